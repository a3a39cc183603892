# Calls Bazel the same way whoever runs it. To be sourced, by a script that stands in the repository.
#
#   esdp_bazel test --config=opt //tests/...

# Where Bazel keeps its output: ESDP_OUTPUT_ROOT, or the user's cache, or a folder of the user's own under /tmp where
# there is no home that can be written to.
esdp_output_root() {
  local cache="${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}"
  if [ -n "${ESDP_OUTPUT_ROOT:-}" ]; then
    echo "$ESDP_OUTPUT_ROOT"
  elif [ -n "$cache" ] && mkdir -p "$cache/bazel" 2>/dev/null && [ -w "$cache/bazel" ]; then
    echo "$cache/bazel"
  else
    echo "${TMPDIR:-/tmp}/esdp-bazel-$(id -u)"
  fi
}

# Reads no rc file of the user's; the system's stays, since it says where Debian put Bazel. Children that call Bazel
# themselves find the same options in ESDP_BAZEL_STARTUP and so share its server.
esdp_bazel() {
  local root startup
  root="$(esdp_output_root)"
  mkdir -p "$root" || return 1
  export ESDP_BAZEL_STARTUP="--nohome_rc --output_user_root=$root --max_idle_secs=300"
  read -ra startup <<<"$ESDP_BAZEL_STARTUP"
  # Bazel asks for a home even where it needs none.
  HOME="${HOME:-$root}" bazel "${startup[@]}" "$@"
}
