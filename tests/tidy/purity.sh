#!/bin/bash
# Proves that the given static libraries call nothing but each other and what ALLOWED lists: no system call, thread,
# clock, environment or chance. A list of what is forbidden would let through whatever nobody thought of.
#
#   purity.sh ALLOWED ARCHIVE...
set -eu -o pipefail

allowed="$1"
shift
[ $# -gt 0 ] || { echo "no archive given: nothing is proved"; exit 1; }

defined="$(nm --defined-only --format=posix "$@" | awk 'NF >= 2 {print $1}' | sort -u)"
wanted="$(nm --undefined-only --format=posix "$@" | awk 'NF >= 2 {print $1}' | sort -u)"
[ -n "$defined" ] || { echo "the archives define nothing: nothing is proved"; exit 1; }

outside="$(comm -23 <(echo "$wanted") <(echo "$defined"))"
patterns="$(grep -v -e '^#' -e '^$' "$allowed")"
impure="$(grep -v -x -E -f <(echo "$patterns") <<<"$outside" || true)"
if [ -n "$impure" ]; then
  echo "calls that a pure library may not make (allowed ones: $allowed):"
  c++filt <<<"$impure"
  exit 1
fi
echo "pure: $# archives, $(wc -l <<<"$outside") outside symbols, all allowed"
