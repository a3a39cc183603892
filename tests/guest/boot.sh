#!/bin/bash
# Boots Debian's kernel under qemu, with this machine's files read-only as its own, and runs inside.sh of a folder there.
#
#   tests/guest/boot.sh FOLDER     FOLDER is shared with the guest, as /tmp/shared; its siw.ko is loaded where it is there
#
# The console goes to standard output. It works wherever qemu does, and is many times as fast where the processor can run
# a guest by itself.
set -eu -o pipefail
shared="$1"
kernel="$(ls /boot/vmlinuz-*-amd64 | sort -V | tail -1)"
version="${kernel#/boot/vmlinuz-}"
limit="${ESDP_GUEST_SECONDS:-1800}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,modules,proc,sys,dev,host}
cp /bin/busybox "$work/bin/"
modules=(virtio_pci 9pnet_virtio 9p veth crc32_generic libcrc32c ib_uverbs ib_umad rdma_ucm rdma_rxe)
for module in "${modules[@]}"; do
  modprobe -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" { print $2 }'
done | awk '!seen[$0]++' >"$work/list"
[ ! -f "$shared/siw.ko" ] || echo "$shared/siw.ko" >>"$work/list"
while read -r file; do
  cp "$file" "$work/modules/"
  basename "$file" >>"$work/order"
done <"$work/list"
cat >"$work/init" <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
echo
echo "GUEST boots"
$b grep -q only_boots /proc/cmdline && $b poweroff -f
while read -r module; do $b insmod "/modules/$module" || echo "FAIL guest.module_$module"; done </order
$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose host /host
for folder in proc sys dev; do $b mount --bind "/$folder" "/host/$folder"; done
$b mount -t tmpfs tmpfs /host/run
$b mount -t tmpfs tmpfs /host/tmp
$b mkdir -p /host/tmp/shared /host/dev/shm
$b mount -t tmpfs tmpfs /host/dev/shm
$b mount -t 9p -o trans=virtio,version=9p2000.L,rw,msize=524288 shared /host/tmp/shared
$b chroot /host /bin/bash /tmp/shared/inside.sh
echo "GUEST ended"
$b poweroff -f
INIT
chmod +x "$work/init"
(cd "$work" && find . | cpio -o -H newc --quiet | gzip -1) >"$shared/initrd"

boot() { # SECONDS WORD ACCELERATION...
  local seconds="$1" word="$2"
  shift 2
  # In the foreground: in the group of whoever ends this script.
  timeout --foreground "$seconds" qemu-system-x86_64 "$@" -smp 2 -m 2048 -nographic -no-reboot \
    -kernel "$kernel" -initrd "$shared/initrd" -append "console=ttyS0 quiet oops=panic panic=-1 loglevel=3 tsc=reliable clocksource=tsc $word" \
    -virtfs local,path=/,mount_tag=host,readonly=on,security_model=none,multidevs=remap \
    -virtfs "local,path=$shared,mount_tag=shared,security_model=none"
}

# Some systems show /dev/kvm and yet cannot run this kernel: so it is tried.
by_the_processor() {
  [ -w /dev/kvm ] && { [ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ]; } &&
    boot 30 only_boots -accel kvm -cpu host </dev/null 2>&1 | grep -a "^GUEST boots" >/dev/null
}

if by_the_processor; then
  boot "$limit" all -accel kvm -cpu host
else
  # Without the two flags of the processor memcpy in the guest is eight times slower.
  boot "$limit" all -accel tcg,thread=multi -cpu max,erms=off,fsrm=off
fi
