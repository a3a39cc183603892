# Calls Bazel the same way whoever runs it. To be sourced, by a script that stands in the repository.
#
#   esdp_bazel test --config=opt //tests/...

# Where Bazel keeps its output: ESDP_OUTPUT_ROOT, or the user's cache, or a folder of the user's own under /tmp where
# there is no home that can be written to.
esdp_output_root() {
  local cache="${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}"
  if [ -n "${ESDP_OUTPUT_ROOT:-}" ]; then
    echo "$ESDP_OUTPUT_ROOT"
  elif mkdir -p "$cache/bazel" 2>/dev/null && [ -w "$cache/bazel" ]; then
    echo "$cache/bazel"
  else
    echo "${TMPDIR:-/tmp}/esdp-bazel-$(id -u)"
  fi
}

# Reads no rc file but the repository's. Debian's Bazel looks for a home even when it needs none.
esdp_bazel() {
  local root
  root="$(esdp_output_root)"
  mkdir -p "$root" || return 1
  HOME="${HOME:-$root}" bazel --nosystem_rc --nohome_rc --output_user_root="$root" \
    --max_idle_secs="${ESDP_BAZEL_IDLE_SECS:-300}" "$@"
}
