#!/bin/bash
# Runs in the guest. Prints PASS or FAIL for each test; what programs print goes to logs in the shared folder, which says
# in the file `steps` what to do:
#
#   DEVICE STEP [FILTER]      on rxe or siw: check, contract, perf, sockets, death, memlock, auto, switch, blocking, down,
#                             figures (FILTER: how many pairs, as 7, or 7:B1,B2 of these rows); on rxe: capture; on
#                             siw: meet; shell (FILTER: a command), to find out
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
shared=/tmp/shared
declare -A name=([rxe]=rxe0 [siw]=siw0) address=([rxe]=10.77.0.1 [siw]=10.78.0.1)
exec >/dev/console 2>&1
cd /tmp || exit

verdict() { # NAME CODE [LOG...]: of a test that fails the last lines of its logs are shown
  local name="$1" code="$2"
  shift 2
  if [ "$code" -eq 0 ]; then
    echo "PASS guest.$name"
  else
    echo "FAIL guest.$name"
    tail -qn 12 "$@" /dev/null 2>/dev/null | sed 's/^/| /'
  fi
}

# Both ends of what is tested use one device: its traffic never leaves it.
lay_out() {
  ulimit -l unlimited
  ip link set lo up
  local kind
  for kind in rxe siw; do
    [ "$kind" = rxe ] || [ -f $shared/siw.ko ] || continue
    ip link add "v$kind" mtu 9000 type veth peer name "w$kind" mtu 9000
    ip address add "${address[$kind]}/24" dev "v$kind"
    ip link set "v$kind" up
    ip link set "w$kind" up
    rdma link add "${name[$kind]}" type "$kind" netdev "v$kind"
  done
}

# The other end of rxe's cable gets a device of its own, so that there is traffic to look at: packets of one address of
# this machine to the other go through the cable, where the kernel would keep them to itself.
add_the_far_end() {
  local switch number=9 pair
  [ ! -d /sys/class/infiniband/rxe1 ] || return
  ip address add 10.77.0.2/24 dev wrxe
  for switch in /proc/sys/net/ipv4/conf/*/accept_local; do echo 1 >"$switch"; done
  for switch in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >"$switch"; done
  ip rule add pref 100 lookup local
  ip rule del pref 0
  for pair in "iif lo to 10.77.0.2" "iif lo from 10.77.0.2 to 10.77.0.1" "iif wrxe to 10.77.0.1" "iif vrxe to 10.77.0.2" \
    "oif wrxe to 10.77.0.1" "oif vrxe to 10.77.0.2"; do # the last two: rdma_cm asks them of a request
    # shellcheck disable=SC2086
    ip rule add pref $((++number)) $pair lookup 77
  done
  link_the_far_end
  rdma link add rxe1 type rxe netdev wrxe
}

link_the_far_end() { # also after a link was down, which takes routes and neighbours with it
  ip route replace 10.77.0.2 dev vrxe src 10.77.0.1 table 77
  ip route replace 10.77.0.1 dev wrxe src 10.77.0.2 table 77
  ip neigh replace 10.77.0.2 lladdr "$(cat /sys/class/net/wrxe/address)" dev vrxe nud permanent
  ip neigh replace 10.77.0.1 lladdr "$(cat /sys/class/net/vrxe/address)" dev wrxe nud permanent
}

# Runs a GoogleTest program over the device; its cases become lines, of one that fails with what it said.
cases() { # DEVICE LOG SECONDS PROGRAM [OPTION...]
  local device="$1" log="$shared/$1_$2.log" what="$2" seconds="$3" code
  shift 3
  ESDP_VERBS_HOSTS="${name[$device]}=${address[$device]}" timeout "$seconds" "$@" --gtest_color=no >"$log" 2>&1
  code=$?
  awk -v name="guest.$device.$what." '
    / ms\)$/ && $2 ~ /^(OK|SKIPPED|FAILED)$/ {
      sub("^On/", "", $4)
      sub(",$", "", $4)
      print ($2 == "OK" ? "PASS" : $2 == "SKIPPED" ? "SKIP" : "FAIL") " " name $4
      for (i = 1; $2 == "FAILED" && i <= lines && i <= 20; i++) print "| " why[i]
    }
    $2 == "RUN" { lines = 0; next }
    { why[++lines] = $0 }' "$log"
  verdict "$device.${what}_ran_to_its_end" $code
}

# Until it says so: the machine may be busy.
until_it_says() { # WORDS LOG
  local tries
  for tries in {1..300}; do
    grep -q "$1" "$2" 2>/dev/null && return
    sleep 0.2
  done
  echo "no '$1' after $((tries / 5)) s: $2"
}

# dumpcap names its file when it sees the packets.
begin_capture() { # INTERFACE FILTER FILE LOG; sets capture
  dumpcap -q -B 64 -i "$1" -f "$2" -w "$3" >"$4" 2>&1 &
  capture=$!
  until_it_says "^File:" "$4"
}

# One transfer of esdp_perf, every byte checked, between two fabrics.
transfer() { # NAME SERVER'S_FABRIC CLIENT'S_FABRIC ADDRESS OPTION...
  local what="$1" server="$2" client="$3" at="$4" code
  shift 4
  $shared/esdp_perf --server --fabric "$server" --listen "$at" --port 7471 --sessions 1 >"$shared/$what.server.log" 2>&1 &
  local far=$!
  until_it_says listening "$shared/$what.server.log"
  timeout 120 $shared/esdp_perf --connect "$at" --port 7471 --fabric "$client" "$@" --verify >"$shared/$what.log" 2>&1
  code=$?
  kill $far 2>/dev/null
  wait $far
  verdict "$what" $code "$shared/$what.log" "$shared/$what.server.log"
}

# Runs a server and a client; the client's end decides.
both() { # NAME SERVER -- CLIENT
  local what="$1" server=() code
  shift
  while [ "$1" != -- ]; do
    server+=("$1")
    shift
  done
  shift
  "${server[@]}" >"$shared/$what.server.log" 2>&1 &
  local far=$!
  for _ in {1..20}; do # what has no server yet is refused; rping gets ports that TCP may have in use
    sleep 1
    timeout 30 "$@" >"$shared/$what.log" 2>&1
    code=$?
    [ $code -ne 0 ] && grep -qiE "refused|rejected|already in use" "$shared/$what.log" || break
  done
  kill $far 2>/dev/null
  wait $far
  verdict "$what" $code "$shared/$what.log" "$shared/$what.server.log"
}

step_check() { # DEVICE
  ibv_devinfo -d "${name[$1]}" >"$shared/$1_device.log" 2>&1
  verdict "$1.device_is_there" $?
  both "$1.rping" rping -s -a "${address[$1]}" -C 10 -- rping -c -a "${address[$1]}" -C 10 -V
}

step_contract() { cases "$1" contract 300 $shared/contract_verbs --gtest_filter="${2:-*}:-*Sentences*"; }
step_sockets() { cases "$1" sockets 600 $shared/sockets_verbs --gtest_filter="${2:-*}:-*Sim*"; }
step_death() { cases "$1" death 300 $shared/process_death_test --gtest_filter="${2:-*}"; }

step_perf() { # DEVICE
  local path
  for path in copy zcopy; do
    transfer "$1.esdp_perf_$path" "verbs:${name[$1]}" "verbs:${name[$1]}" "${address[$1]}" --path $path --size 256K --bytes 16M
  done
}

# siw and qpip, two implementations of iWARP that know nothing of each other.
step_meet() {
  local at="${address[siw]}" path
  ESDP_VERBS_MEETS_QPIP=1 cases siw contract_with_qpip 400 $shared/contract_verbs --gtest_filter="${2:-*}:-*Sentences*"
  local capture
  begin_capture lo "host $at and tcp" /tmp/iwarp.pcapng "$shared/dumpcap_siw.log"
  for path in copy zcopy; do
    transfer "siw.serves_qpip_$path" verbs:siw0 qpip "$at" --path $path --size 256K --bytes 2M
    transfer "siw.calls_qpip_$path" qpip verbs:siw0 "$at" --path $path --size 256K --bytes 2M
  done
  both siw.rping_serves_qpip rping -s -a "$at" -C 10 -p 7475 -- $shared/rping_qpip client "$at" 7475 10
  both siw.rping_calls_qpip $shared/rping_qpip server "$at" 7476 10 -- rping -c -a "$at" -C 10 -V -p 7476
  kill $capture
  wait $capture
  cp /tmp/iwarp.pcapng $shared/
}

step_capture() {
  add_the_far_end
  local capture path
  begin_capture vrxe "udp port 4791" /tmp/roce.pcapng "$shared/dumpcap_rxe.log"
  for path in copy zcopy; do
    transfer "rxe.two_devices_$path" verbs:rxe1:ib verbs:rxe0:ib 10.77.0.2 --path $path --size 96K --bytes 3M
  done
  kill $capture
  wait $capture
  cp /tmp/roce.pcapng $shared/
}

# A user who may lock little memory is told so, with the limit and the cure.
step_memlock() { # DEVICE
  local fabric="verbs:${name[$1]}" at="${address[$1]}" log="$shared/$1_memlock.log"
  chmod 666 /dev/infiniband/*
  $shared/esdp_perf --server --fabric "$fabric" --listen "$at" --port 7471 --sessions 1 >"$log.server" 2>&1 &
  local far=$!
  until_it_says listening "$log.server"
  (
    ulimit -l 64
    timeout 30 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
      $shared/esdp_perf --connect "$at" --port 7471 --fabric "$fabric" --size 1M --bytes 4M >"$log" 2>&1
  )
  kill $far 2>/dev/null
  wait $far
  grep -q "RLIMIT_MEMLOCK.*65536 bytes" "$log"
  verdict "$1.a_low_limit_of_locked_memory_is_named" $? "$log"
}

# A transfer whose link goes down ends at both ends, in bounded time and with a reason; another one works afterwards.
step_down() { # DEVICE
  local here="verbs:${name[$1]}" there="verbs:${name[$1]}" at="${address[$1]}" code
  if [ "$1" = rxe ]; then
    add_the_far_end
    there=verbs:rxe1
    at=10.77.0.2
  fi
  timeout 90 $shared/esdp_perf --server --fabric "$there" --listen "$at" --port 7471 --sessions 1 >"$shared/$1_down.server.log" 2>&1 &
  local far=$!
  until_it_says listening "$shared/$1_down.server.log"
  timeout 90 $shared/esdp_perf --connect "$at" --port 7471 --fabric "$here" --path zcopy --size 256K --seconds 60 \
    >"$shared/$1_down.log" 2>&1 &
  local client=$!
  until_it_says "MB/s" "$shared/$1_down.log" # a line of each second
  kill -0 $client
  local running=$?
  ip link set "v$1" down
  wait $client
  code=$?
  echo "it ran when the link went down: $((!running)); it ended with $code" >>"$shared/$1_down.log"
  [ $running -eq 0 ] && [ $code -ne 0 ] && [ $code -ne 124 ] && grep -q "esdp_perf: [A-Z]" "$shared/$1_down.log"
  verdict "$1.a_link_that_goes_down_ends_the_transfer" $? "$shared/$1_down.log" "$shared/$1_down.server.log"
  kill $far 2>/dev/null
  wait $far
  ip link set "v$1" up
  if [ "$1" = rxe ]; then # without a route the device's own queue pair for messages of the manager fails for good
    rdma link del rxe0
    rdma link add rxe0 type rxe netdev vrxe
    link_the_far_end
  fi
  until_it_says ACTIVE "/sys/class/infiniband/${name[$1]}/ports/1/state"
  sleep 1
  transfer "$1.works_after_the_link_is_back" "$there" "$here" "$at" --path zcopy --size 256K --bytes 1M
}

# Without a name for the fabric: the device where it leads to the peer, else qpip; and both say so.
step_auto() { # DEVICE
  local device="$1" at path fabric="auto:${name[$1]}"
  for at in "${address[$1]}:verbs" 127.0.0.1:qpip; do
    path="${at#*:}"
    transfer "$device.auto_takes_$path" "$fabric" "$fabric" "${at%:*}" --path zcopy --size 256K --bytes 1M --json
    grep -q "\"transport\":\"$path\"" "$shared/$device.auto_takes_$path.log"
    verdict "$device.auto_says_$path" $?
  done
}

step_blocking() { # DEVICE
  local log="$shared/$1_blocking.log"
  timeout 300 python3 $shared/blocking_instructions.py $shared/blocking_bytes "verbs:${name[$1]}" "${address[$1]}" >"$log" 2>&1
  verdict "$1.zero_copy_spares_blocking_calls_most_of_their_instructions" $? "$log"
}

# Programs that nobody changes get to the device; a user of his own may use it.
step_switch() { # DEVICE
  chmod 666 /dev/infiniband/*
  mkdir -p /tmp/switch
  cp $shared/libesdp-switch*.so /tmp/switch/
  timeout 300 python3 $shared/switched.py "$1" "${address[$1]}" "${2:-1}" 2>"$shared/$1_switch.log"
  verdict "$1.switch_ran_to_its_end" $? "$shared/$1_switch.log"
}

step_figures() { python3 $shared/figures.py "${name[$1]}" "${address[$1]}" "${2:-7}" 2>"$shared/$1_figures.log"; }

step_shell() { bash -c "$2" >"$shared/$1_shell.log" 2>&1; }

echo
lay_out
while read -r device step filter <&3; do
  echo "== guest: $step on $device, $(cut -d. -f1 /proc/uptime) s after it booted"
  "step_$step" "$device" "$filter"
done 3<$shared/steps
