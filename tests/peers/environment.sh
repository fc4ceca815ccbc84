# What the scripts of this folder need, to be sourced from the project's root.
# shellcheck shell=bash

# peers_python 'MODULE, MODULE' PACKAGE ...: `python` becomes that of a virtual environment outside the tree, ENGRAM_PEERS
# (default ~/.cache/engram-peers), into which the packages are installed if it lacks one of the modules.
peers_python() {
  local modules=$1 environment=${ENGRAM_PEERS:-$HOME/.cache/engram-peers}
  shift
  python=$environment/bin/python
  if "$python" -c "import $modules" 2>/dev/null; then return; fi
  echo "Installing $* into $environment ..."
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet "$@"
}

# `engram` becomes the program of this tree, built if it is not.
peers_program() {
  cmake --preset program --log-level=WARNING >/dev/null
  cmake --build build/program --target engram --parallel "$(nproc)"
  engram=build/program/apps/engram
}
