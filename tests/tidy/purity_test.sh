#!/bin/bash
# The purity check must itself be able to fail.
#
#   purity_test.sh PURITY ALLOWED PURE_ARCHIVE IMPURE_ARCHIVE
set -u
purity="$1"; allowed="$2"; pure="$3"; impure="$4"
failed=0
expect() { [ "$1" = "$2" ] || { echo "FAILED: $3"; failed=1; }; }

"$purity" "$allowed" "$pure"
expect $? 0 "a pure archive passes"

"$purity" "$allowed"
expect $? 1 "no archive at all is refused"

report="$("$purity" "$allowed" "$impure")"
expect $? 1 "a planted archive is refused"
for call in clock_gettime 'std::chrono::_V2::steady_clock::now' getenv rand 'std::thread'; do
  grep -q -F "$call" <<<"$report"
  expect $? 0 "the planted call of $call is named in: $report"
done

"$purity" "$allowed" "$pure" "$impure" >/dev/null
expect $? 1 "one impure archive among pure ones is refused"
exit $failed
