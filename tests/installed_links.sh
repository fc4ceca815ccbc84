#!/usr/bin/env bash
# Whether every link and picture of the pages below a folder leads to a file that is there. tests/pages_test.cpp looks at
# those of the tree; these are of what was installed (tests/install.sh, tests/packages.sh).
#   bash tests/installed_links.sh FOLDER     for instance: share/doc/engram of what was installed
set -euo pipefail
export LC_ALL=C.UTF-8

folder=${1:?tests/installed_links.sh: which folder?}
pages=0
links=0
dead=0
while IFS= read -r page; do
  pages=$((pages + 1))
  # Listings and code have none. A link to a heading of the same page begins with #, one to another site has ://.
  # shellcheck disable=SC2016  # of sed
  while IFS= read -r target; do
    links=$((links + 1))
    if [[ ! -e $(dirname "$page")/$target ]]; then
      dead=$((dead + 1))
      printf '%s: there is no %s\n' "${page#"$folder"/}" "$target" >&2
    fi
  done < <(awk '/^ *```/ { listed = !listed; next } !listed' "$page" | sed -E 's/`[^`]*`//g' | grep -oE '\]\([^)# ]+' |
    sed 's/^](//' | grep -v '://' || true)
done < <(find "$folder" -name '*.md')
if ((pages < 50 || links < 300)); then
  echo "tests/installed_links.sh: '$folder' must have the pages, with their links, got $pages with $links" >&2
  exit 1
fi
if ((dead > 0)); then
  echo "tests/installed_links.sh: every link of $pages pages must lead to a file, got the $dead above that do not" >&2
  exit 1
fi
