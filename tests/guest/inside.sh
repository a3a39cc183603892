#!/bin/bash
# Runs in the guest. Prints PASS or FAIL for each test; what programs print goes to logs in the shared folder.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
shared=/tmp/shared
address=10.77.0.1
exec >/dev/console 2>&1

verdict() { # NAME CODE
  if [ "$2" -eq 0 ]; then echo "PASS guest.$1"; else echo "FAIL guest.$1"; fi
}

ulimit -l unlimited
ip link set lo up
ip link add veth0 mtu 9000 type veth peer name veth1 mtu 9000
ip address add $address/24 dev veth0
ip link set veth0 up
ip link set veth1 up
rdma link add rxe0 type rxe netdev veth0

echo "== guest: the device itself"
ibv_devinfo -d rxe0 >$shared/device.log 2>&1
verdict rxe.device_is_there $?
rping -s -a $address -C 10 >$shared/rping_server.log 2>&1 &
sleep 1
timeout 30 rping -c -a $address -C 10 -V >$shared/rping.log 2>&1
verdict rxe.rping $?

echo "== guest: the contract of the port on rxe"
cd /tmp || exit
ESDP_VERBS_HOSTS=rxe0=$address timeout 500 $shared/contract_verbs --gtest_color=no \
  --gtest_filter="$(cat $shared/filter):-*Sentences*" >$shared/contract.log 2>&1
code=$?
sed -n -E 's#^\[       OK \] (On/)?([A-Za-z]+[.][A-Za-z]+)/rxe0.*#PASS guest.rxe.\2#p;
  s#^\[  FAILED  \] (On/)?([A-Za-z]+[.][A-Za-z]+)/rxe0.*ms\)#FAIL guest.rxe.\2#p' $shared/contract.log
verdict rxe.contract_ran_to_its_end $code

echo "== guest: esdp_perf on rxe"
for path in copy zcopy; do
  $shared/esdp_perf --server --fabric verbs:rxe0 --listen $address --port 7471 --sessions 1 \
    >$shared/perf_server_$path.log 2>&1 &
  sleep 1
  timeout 120 $shared/esdp_perf --connect $address --port 7471 --fabric verbs:rxe0 --path $path \
    --size 256K --bytes 32M --verify >$shared/perf_$path.log 2>&1
  verdict rxe.esdp_perf_$path $?
  wait %% 2>/dev/null
done
