# Makes siw, iWARP in software, from Debian's kernel source: Debian's kernel comes without it. To be sourced.
#
#   esdp_siw VERSION      prints where the module for that kernel is, built at most once for each version of the source

esdp_siw() {
  local version="$1" source=linux-source-6.1 inner=drivers/infiniband/sw/siw
  local package folder work code
  package="$(dpkg-query -W -f '${Version}' "$source")" || return 1
  folder="$(esdp_output_root)/guest/siw-$version-$package"
  if [ ! -f "$folder/siw.ko" ]; then
    work="$(mktemp -d)" || return 1
    tar -C "$work" -xf "/usr/src/$source.tar.xz" "$source/$inner" &&
      make -C "/usr/src/linux-headers-$version" M="$work/$source/$inner" CONFIG_RDMA_SIW=m modules >"$work/log" 2>&1 &&
      strip --strip-debug "$work/$source/$inner/siw.ko" && mkdir -p "$folder" &&
      mv "$work/$source/$inner/siw.ko" "$folder/siw.ko"
    code=$?
    [ $code -eq 0 ] || tail -20 "$work/log" >&2
    rm -rf "$work"
    [ $code -eq 0 ] || return 1
  fi
  echo "$folder/siw.ko"
}
