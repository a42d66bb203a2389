#!/bin/sh
# Installs retrompi for a lab room, or for yourself: sh install.sh [OPTIONS]
#
#   --from FOLDER|INDEX  a wheelhouse ('make wheelhouse': no network needed) or the address of a package index
#                        (default: the folder this script lies in, if it has wheels; else what pip is set to)
#   --prefix FOLDER      where it goes (default: /opt/retrompi, without root ~/.local/lib/retrompi)
#   --links FOLDER       the folder whose bin and share get links (default: /usr/local, without root ~/.local)
#   --python PYTHON      the Python to use (default: the first of python3, python3.13, 3.12, 3.11 that fits)
#   --uninstall          remove what an earlier call installed in the prefix
#
# All users share what is installed, read-only; runs and answers are kept in each user's home. A call again upgrades, or does nothing when
# nothing is new. Exit code 2: this machine or what was given does not fit, and one line says why.
set -eu
umask 022

die() {
  echo "install.sh: $*" >&2
  exit 2
}

me=$(cd "$(dirname "$0")" && pwd)
from=
links=
prefix=
python=
uninstall=
while [ $# -gt 0 ]; do
  case $1 in
    --from | --prefix | --links | --python)
      [ $# -ge 2 ] || die "$1 needs a value (sh install.sh --help)"
      case $1 in
        --from) from=$2 ;;
        --prefix) prefix=$2 ;;
        --links) links=$2 ;;
        --python) python=$2 ;;
      esac
      shift 2
      ;;
    --uninstall)
      uninstall=yes
      shift
      ;;
    -h | --help)
      sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0"
      exit 0
      ;;
    *) die "unknown option '$1' (sh install.sh --help)" ;;
  esac
done

if [ "$(id -u)" = 0 ]; then
  : "${prefix:=/opt/retrompi}" "${links:=/usr/local}"
else
  : "${prefix:=$HOME/.local/lib/retrompi}" "${links:=$HOME/.local}"
fi
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
case $links in /*) ;; *) links=$PWD/$links ;; esac
[ "$prefix" != "$links" ] || die "--prefix and --links name the same folder; the prefix is one of its own, e.g. $links/lib/retrompi"

# Links of an installation: those named in its list that still point into it.
unlink_all() {
  [ -f "$prefix/links" ] || return 0
  while IFS= read -r link; do
    case $(readlink "$link" 2>/dev/null || true) in "$prefix"/*) rm -f "$link" ;; esac
  done <"$prefix/links"
  rm -f "$prefix/links"
}

if [ -n "$uninstall" ]; then
  [ -f "$prefix/.retrompi" ] || die "nothing of install.sh in $prefix; name the folder with --prefix"
  [ -w "$prefix" ] || die "$prefix is not yours to write; call install.sh as the user who installed it"
  unlink_all
  rm -rf "$prefix"/venv-* "$prefix/current" "$prefix/.retrompi"
  rmdir "$prefix" 2>/dev/null || echo "install.sh: $prefix has other files and is kept"
  echo "retrompi is removed from $prefix; what users kept in their homes (~/.local/share/retrompi) is left"
  exit 0
fi

# -- does this machine fit? ------------------------------------------------------------------------------------------------------------

[ -n "$from" ] || [ -z "$(find "$me" -maxdepth 1 -name 'retrompi-*.whl')" ] || from=$me
wheels=
case $from in
  '' | *://*) ;;
  *)
    [ -d "$from" ] || die "--from $from: no such folder, and no address of an index (https://...)"
    from=$(cd "$from" && pwd)
    wheels=$(cd "$from" && find . -maxdepth 1 -name 'retrompi-*.whl' | sed 's|^\./||' | sort)
    [ -n "$wheels" ] || die "--from $from: no wheel of retrompi in that folder; 'make wheelhouse' fills one"
    ;;
esac

glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc \([0-9]*\)\.\([0-9]*\).*/\1 \2/p') || glibc=
[ -n "$glibc" ] || die "this system's C library is not the GNU one, and the wheel needs that (manylinux); build from source: docs/install.md"
glibc_minor=${glibc#* }
if [ -n "$wheels" ]; then
  machine=$(uname -m)
  fitting=$(echo "$wheels" | grep "_$machine\.whl$" || true)
  [ -n "$fitting" ] || die "--from $from: no wheel for this processor ($machine), only $(echo "$wheels" | sed 's/.*_\(x86_64\|aarch64\|.*\)\.whl/\1/' | sort -u | tr '\n' ' ')"
  needed=$(echo "$fitting" | sed -n 's/.*manylinux_2_\([0-9]*\)_.*/\1/p' | sort -n | head -n 1)
  if [ -n "$needed" ] && [ "${glibc% *}" = 2 ] && [ "$glibc_minor" -lt "$needed" ]; then
    die "glibc 2.$glibc_minor is too old, 2.$needed is needed (Debian 12, Ubuntu 22.04, RHEL 9 or newer); or build from source: docs/install.md"
  fi
fi

# 'cp311' of a Python that fits, else a word why not.
judge() {
  "$1" - 2>/dev/null <<'END' || echo "broken"
import sys
if sys.version_info < (3, 11):
    print("old %d.%d" % sys.version_info[:2])
else:
    try:
        import ensurepip, venv
        print("cp%d%d" % sys.version_info[:2])
    except ImportError:
        print("venv %d.%d" % sys.version_info[:2])
END
}

# No wheel for this one: the others are looked at, and it is told if none fits.
has_wheel() { [ -z "$wheels" ] || echo "$fitting" | grep -q -- "-$1-"; }

why="no python3 was found; install Python 3.11 or newer (Debian 12: apt-get install python3-venv)"
chosen=
for candidate in ${python:-python3 python3.13 python3.12 python3.11}; do
  command -v "$candidate" >/dev/null 2>&1 || continue
  verdict=$(judge "$candidate")
  case $verdict in
    cp*)
      if has_wheel "$verdict"; then
        chosen=$(command -v "$candidate")
        break
      fi
      why="$candidate is ${verdict}, and the wheels in $from are for $(echo "$fitting" | sed 's/.*-\(cp[0-9]*\)-cp.*/\1/' | sort -u | tr '\n' ' ')"
      ;;
    old*) why="$candidate is Python ${verdict#old }, too old: 3.11 or newer is needed" ;;
    venv*) why="$candidate (Python ${verdict#venv }) cannot make a virtual environment; Debian and Ubuntu: apt-get install python3-venv" ;;
    *) why="$candidate does not run" ;;
  esac
done
[ -n "$chosen" ] || die "${python:+--python $python: }$why"

# -- install ---------------------------------------------------------------------------------------------------------------------------

mkdir -p "$prefix" 2>/dev/null || die "$prefix cannot be made: choose another --prefix, or call install.sh as root"
[ -w "$prefix" ] || die "$prefix is not yours to write: choose another --prefix, or call install.sh as root"
if [ ! -f "$prefix/.retrompi" ] && [ -n "$(ls -A "$prefix")" ]; then
  die "$prefix has files of something else; the prefix is a folder of retrompi's own"
fi
touch "$prefix/.retrompi"

# What would be installed, by content; an index can only be asked.
wanted=
if [ -n "$wheels" ]; then
  wanted=$(cd "$from" && cat -- *.whl | cksum | tr ' ' '-')-$("$chosen" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
  if [ "$(cat "$prefix/.retrompi")" = "$wanted" ] && "$prefix/current/bin/retrompi" --version >/dev/null 2>&1; then
    echo "$("$prefix/current/bin/retrompi" --version) is installed in $prefix already"
    exit 0
  fi
fi

# A new environment beside the one in use, which is changed for it at once: an upgrade that fails leaves what was there.
new=$prefix/venv-$(date +%Y%m%d%H%M%S)-$$
trap 'rm -rf "$new"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$chosen" -m venv "$new" || die "$chosen cannot make a virtual environment; Debian and Ubuntu: apt-get install python3-venv"
set -- install -q --disable-pip-version-check --no-input --only-binary :all:
case $from in
  '') ;;
  *://*) set -- "$@" --index-url "$from" ;;
  *) set -- "$@" --no-index --find-links "$from" ;;
esac
"$new/bin/python" -m pip "$@" retrompi || die "pip could not install retrompi from ${from:-its index} (its words are above)"
version=$("$new/bin/retrompi" --version) || die "what was installed does not run"
chmod -R a+rX,go-w "$new"

[ ! -e "$prefix/current" ] || [ -L "$prefix/current" ] || die "$prefix/current is no link of install.sh"
unlink_all
ln -s "$new" "$prefix/current.new"
mv -T "$prefix/current.new" "$prefix/current"
trap - EXIT
for old in "$prefix"/venv-*; do
  [ "$old" = "$new" ] || rm -rf "$old"
done

# link FILE-IN-THE-ENVIRONMENT FOLDER: nothing of others is overwritten.
link() {
  [ -e "$prefix/current/$1" ] || return 0
  mkdir -p "$2"
  target=$2/$(basename "$1")
  case $(readlink "$target" 2>/dev/null || true) in
    "$prefix"/*) ;;
    *)
      if [ -e "$target" ] || [ -L "$target" ]; then
        echo "install.sh: $target is there already, is not ours and is kept" >&2
        return 0
      fi
      ;;
  esac
  ln -sfn "$prefix/current/$1" "$target"
  echo "$target" >>"$prefix/links"
}
if mkdir -p "$links/bin" 2>/dev/null && [ -w "$links/bin" ]; then
  link bin/retrompi "$links/bin"
  for page in "$prefix"/current/share/man/man1/retrompi*.1; do
    link "share/man/man1/$(basename "$page")" "$links/share/man/man1"
  done
  link share/bash-completion/completions/retrompi "$links/share/bash-completion/completions"
  link share/zsh/site-functions/_retrompi "$links/share/zsh/site-functions"
  link share/fish/vendor_completions.d/retrompi.fish "$links/share/fish/vendor_completions.d"
else
  echo "install.sh: $links/bin cannot be written, so nothing is linked there; the command is $prefix/current/bin/retrompi" >&2
fi
echo "${wanted:-from an index}" >"$prefix/.retrompi"
chmod -R a+rX "$prefix"

echo "$version is installed in $prefix, the command is $links/bin/retrompi"
case :$PATH: in
  *:"$links/bin":*) ;;
  *) echo "$links/bin is not on your PATH: add  export PATH=\"$links/bin:\$PATH\"  to ~/.profile, then log in again" ;;
esac
