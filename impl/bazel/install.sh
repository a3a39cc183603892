# Installs the Debian packages that are missing. To be sourced; samples/quickstart and tests/run both do.
#
#   esdp_install "${esdp_build_packages[@]}" || exit 1

# What building and running needs.
esdp_build_packages=(
  bazel-bootstrap
  g++
  libabsl-dev
  libbenchmark-dev
  libgmock-dev
  libgtest-dev
  libibverbs-dev
  libisal-dev
  libprotobuf-dev
  librdmacm-dev
  libssl-dev
  protobuf-compiler
  python3
)

# What building the Python package needs beside that.
esdp_python_packages=(
  pybind11-dev
  python3-dev
  python3-pip
  python3-setuptools
  python3-venv
  python3-wheel
)

# What the tests need beside that.
esdp_test_packages=(
  apache2-bin
  clang-14
  clang-format-14
  clang-tidy-14
  cmake
  curl
  fio
  haproxy
  iperf3
  iproute2
  lftp
  libclang-rt-14-dev
  libmemcached-tools
  libpython3.11-testsuite
  lighttpd
  lld-14
  man-db
  memcached
  mypy
  ncat
  nginx
  nodejs
  openssh-client
  openssh-server
  openssl
  pkg-config
  python3-aiohttp
  python3-hypothesis
  python3-matplotlib
  python3-numpy
  python3-protobuf
  python3-pytest
  python3-redis
  python3-websockets
  redis-server
  redis-tools
  rsync
  socat
  squid
  strace
  stunnel4
  universal-ctags
  valgrind
  vsftpd
  wrk
)

# What the guest with RDMA devices needs (tests/guest); headers, source and make for siw, which Debian's kernel comes
# without.
esdp_guest_packages=(
  busybox-static
  cpio
  ibverbs-utils
  iperf3
  iproute2
  kmod
  linux-headers-amd64
  linux-image-amd64
  linux-source-6.1
  make
  perftest
  qemu-system-x86
  rdma-core
  rdmacm-utils
  tshark
  xz-utils
)

esdp_say() { printf '== %s\n' "$*"; }

esdp_missing() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

# Returns 0 when every named package is there. Only root can install; anybody else is told what to type.
esdp_install() {
  local missing
  mapfile -t missing < <(esdp_missing "$@")
  if [ ${#missing[@]} -eq 0 ]; then
    esdp_say "packages: all $# are installed"
    return 0
  fi
  if [ "$(id -u)" -ne 0 ]; then
    esdp_say "packages missing: ${missing[*]}" >&2
    esdp_say "run: sudo apt-get update && sudo apt-get install ${missing[*]}" >&2
    return 1
  fi
  esdp_say "packages: installing ${missing[*]}"
  apt-get update -q &&
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" || {
    esdp_say "apt-get could not install: ${missing[*]}" >&2
    return 1
  }
}
