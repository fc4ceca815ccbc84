#!/usr/bin/env bash
# Installs the Debian packages that Engram's build needs and that are missing, and says which.
#   bash apps/install_packages.sh [ANOTHER_PACKAGE ...]
# Works as root or through sudo; with neither it prints the line to type and stops with 1. When nothing is missing it
# prints one line and touches nothing. Debian 12, 13 and their relatives; elsewhere it only lists what the build looks for.
set -euo pipefail

# catch2 is for the tests only, but CMake looks for it when the project is configured. libdnnl-dev is oneDNN. libedit-dev
# is for the editing of lines alone, libjs-chart.js for the lines of `engram report`, libcpp-httplib-dev for `engram watch`.
build_packages=(
  g++ cmake ninja-build libeigen3-dev libdnnl-dev catch2 libcli11-dev libfmt-dev nlohmann-json3-dev
  libsentencepiece-dev libtomlplusplus-dev libedit-dev libjs-chart.js libcpp-httplib-dev
)

case "${1-}" in
  -h | --help)
    sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "Packages: this system has no apt. Going on with what is installed; wanted are the equivalents of"
  echo "  ${build_packages[*]} $*"
  exit 0
fi

missing=()
for package in "${build_packages[@]}" "$@"; do
  # A package may be known for two architectures, or removed with its configuration left behind.
  if ! dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
    missing+=("$package")
  fi
done
if ((${#missing[@]} == 0)); then
  echo "Packages: all there, nothing to install."
  exit 0
fi

stop_with_the_line() {
  echo >&2
  echo "$1" >&2
  echo "These packages are missing; as root, type this line and then call the script again:" >&2
  echo "  apt-get update && apt-get install --yes --no-install-recommends ${missing[*]}" >&2
  exit 1
}

# sudo may ask for a password only where somebody can answer.
if ((EUID == 0)); then
  as_root=()
elif ! command -v sudo >/dev/null; then
  stop_with_the_line "Packages can be installed only by root, and there is no sudo here."
elif sudo -n true 2>/dev/null; then
  as_root=(sudo)
elif [[ -t 0 ]]; then
  as_root=(sudo)
  echo "Packages: sudo may ask for your password."
  sudo -v || stop_with_the_line "Packages can be installed only by root, and sudo refused."
else
  stop_with_the_line "Packages can be installed only by root, and sudo wants a password with no terminal to ask on."
fi

echo "Packages: installing ${missing[*]}"
echo "  and what they depend on (on an empty system 100 MB to fetch, about a minute) ..."
log=$(mktemp "${TMPDIR:-/tmp}/engram-packages.XXXXXX")
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" \
    </dev/null >>"$log" 2>&1
}
# The lists may be good enough when fetching new ones fails, for instance without a network but with a cache.
apt update || echo "  (the package lists could not be refreshed; trying with those at hand)"
if ! apt install --yes --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  stop_with_the_line "apt-get could not install the packages; its last lines are above, all of them in $log"
fi
rm -f "$log"
echo "Packages: installed."
