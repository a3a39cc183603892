#!/bin/bash
# Installs the package as docs/python.md says, into an environment of its own, and uses it outside of the repository.
# Prints PASS or FAIL for each step. Called by tests/run, since it calls Bazel.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1

folder="$(mktemp -d)" || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

step() {
  local name="$1"
  shift
  if "$@"; then echo "PASS wheel.$name"; else echo "FAIL wheel.$name"; failed=1; fi
}

use_it() {
  local version
  version="$(cat impl/package/version)"
  cd / && env -u PYTHONPATH "$folder/venv/bin/python" -W error - "$version" <<'END'
import importlib.metadata
import os
import sys
import esdp
import esdp.files

assert esdp.__version__ == importlib.metadata.version("esdp") == sys.argv[1], esdp.__version__
assert "site-packages" in esdp.__file__, esdp.__file__
assert os.path.exists(os.path.join(os.path.dirname(esdp.__file__), "py.typed"))
with esdp.Context(fabric="qpip") as context, context.queue() as queue, context.socket() as listener:
    listener.bind("127.0.0.1:0")
    listener.listen()
    listener.accept(queue)
    with context.socket() as client, context.allocate(1 << 20) as memory:
        client.connect(listener.local, queue)
        (accepted,) = [event.check() for event in queue.get(min=2, timeout=20) if event.has_connection]
        with context.take_accepted(accepted) as server:
            server.recv(memory, queue, wait_all=True)
            client.send(memory, queue)
            assert {event.check().bytes for event in queue.get(min=2, timeout=20)} == {1 << 20}
END
}

editable_is_refused() {
  local said
  if said="$("$folder/venv/bin/pip" install --no-build-isolation --editable ./bindings/python 2>&1)"; then return 1; fi
  grep -q 'esdp cannot be installed editable' <<<"$said" || { echo "$said" >&2 && return 1; }
}

left_clean() { [ -z "$(find bindings/python -name '*.egg-info' -o -name build -o -name '*.so')" ]; }

step environment_is_made /usr/bin/python3 -m venv --system-site-packages "$folder/venv"
step editable_is_refused_in_a_line editable_is_refused
step pip_installs "$folder/venv/bin/pip" install --quiet --no-build-isolation ./bindings/python
(step wheel_works_outside_of_the_repository use_it; exit $failed) || failed=1
step repository_is_left_clean left_clean
exit $failed
