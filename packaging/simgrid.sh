#!/bin/sh
# Builds the SimGrid that the wheel carries, from its source distribution: packaging/simgrid.sh [FOLDER]   (default build/simgrid)
#
# In FOLDER afterwards: root/ (include, lib: SIMGRID_ROOT for CMake), licences/ (what goes into the wheel), simgrid-*.tar.gz (the sources).
# Only what the engine links is built: no SMPI, Python, Java, model checker, sthread or optional library. Needs a C++ compiler, CMake, Ninja,
# Boost's headers and a Python with pip (PYTHON). SIMGRID_SDIST names a source distribution that is already there. A second call does nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../build/simgrid}
python=$(command -v "${PYTHON:-python3}")
case $python in /*) ;; *) python=$PWD/$python ;; esac
jobs=${JOBS:-$(nproc)}
wanted=$(sed -n 's/.*sha256:\([0-9a-f]*\).*/\1/p' "$here/simgrid.txt")
release=$(sed -n 's/^simgrid==\([^ ]*\).*/\1/p' "$here/simgrid.txt")

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
made=$(cat "$here/simgrid.sh" "$here/simgrid.txt" "$here/oldest-symbols.hpp" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$folder/.made" 2>/dev/null)" = "$made" ]; then
  exit 0
fi

sdist=${SIMGRID_SDIST:-$folder/simgrid-$release.tar.gz}
if [ ! -f "$sdist" ]; then
  # pip compares the content with the hash before it looks at it; what it then asks of setup.py compiles nothing.
  "$python" -m pip download -q --disable-pip-version-check --no-deps --no-binary simgrid --require-hashes -r "$here/simgrid.txt" -d "$folder"
fi
found=$(sha256sum "$sdist" | cut -d' ' -f1)
if [ "$found" != "$wanted" ]; then
  echo "$sdist is not SimGrid $release: its SHA-256 is $found, not $wanted; delete it, or name the right one in SIMGRID_SDIST" >&2
  exit 2
fi

echo "building SimGrid $release (the wheel carries it): about four minutes of processor time"
rm -rf "$folder/source" "$folder/work" "$folder/root" "$folder/licences" "$folder/.made"
mkdir "$folder/source"
tar -xzf "$sdist" -C "$folder/source" --strip-components=1

# SimGrid's own flags (-O3, all debugging information) come first, ours are appended. Neither folder nor date gets into the library.
flags="-O2 -g0 -fno-unroll-loops -ffile-prefix-map=$folder/source=simgrid -ffile-prefix-map=$folder/work=simgrid"
log=$folder/build.log
mkdir "$folder/work"
{
  cd "$folder/work" && # SimGrid's configuration leaves a file where it is called
    CFLAGS=$flags CXXFLAGS="$flags -include $here/oldest-symbols.hpp" cmake -G Ninja -S "$folder/source" -B "$folder/work" \
      -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_BUILD_TYPE=None \
      -Denable_smpi=OFF -Denable_python=OFF -Denable_java=OFF -Denable_model-checking=OFF -Denable_sthread=OFF -Denable_documentation=OFF \
      -Denable_fortran=OFF -Dminimal-bindings=ON -Denable_lto=OFF -DEIGEN3_HINT=OFF -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON \
      -DPython3_EXECUTABLE="$python" &&
    ninja -C "$folder/work" -j "$jobs" simgrid
} >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  echo "SimGrid $release did not build (all of it: $log)" >&2
  exit 1
}

# Headers as SimGrid installs them; its tools, which the install target also wants, are not built.
mkdir -p "$folder/root/lib" "$folder/licences"
cp -R "$folder/source/include" "$folder/root/include"
cp -R "$folder/work/include/." "$folder/root/include/"
cp -P "$folder/work/lib/"libsimgrid.so* "$folder/root/lib/"
strip --strip-unneeded "$folder/root/lib/libsimgrid.so.$release"
cp "$folder/source/LICENSE-LGPL-2.1" "$folder/source/COPYING" "$folder/source/AUTHORS" "$folder/licences/"
cat >"$folder/licences/README" <<END
The folder retrompi.libs of this wheel holds libsimgrid, the library of SimGrid $release (https://simgrid.org), copyright the SimGrid team
(AUTHORS), under the GNU Lesser General Public License 2.1 (LICENSE-LGPL-2.1; parts of it under the licences in COPYING).

Its sources are simgrid-$release.tar.gz, unmodified, SHA-256 $wanted.
They lie in the folder 'sources' of the wheelhouse that this wheel came in; any Python package index that has SimGrid gives them too:
  pip download --no-deps --no-binary simgrid simgrid==$release
packaging/simgrid.sh in the sources of retrompi is how the library was built from them.

It is a shared library, and you may use a changed one: put it in the place of the file in retrompi.libs, under the same name, or build
the sources of retrompi with SIMGRID_ROOT naming the folder that has its include and lib.
END
rm -rf "$folder/source" "$folder/work"
echo "$made" >"$folder/.made"
