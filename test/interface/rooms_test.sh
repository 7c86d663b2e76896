#!/usr/bin/env bash
# Each room of src/ uses only the rooms that tools/rooms allows it, by its headers and by its
# symbols; a use against the direction is found.
. "$SOURCE_DIR/test/script.sh"
command -v python3 >/dev/null || skip "needs python3"
objects=$BUILD_DIR/CMakeFiles/goro_objects.dir/src
export NM
"$SOURCE_DIR/tools/rooms" "$objects" || fail "src/ and the table in tools/rooms differ"

mkdir -p "$work/tools"
cp -R "$SOURCE_DIR/src" "$work/src"
cp "$SOURCE_DIR/tools/rooms" "$work/tools"
cd "$work"
echo '#include "sched/runq.h"' >>src/base/mem.c
tools/rooms | grep -q '^base/mem uses sched/runq' || fail "an include against the direction is not found"
sed -i '$d' src/base/mem.c
echo 'void goro_planted(void); void goro_plant(void); void goro_plant(void) { goro_planted(); }' >plant.c
echo 'void goro_planted(void); void goro_planted(void) { }' >planted.c
mkdir -p objects/base objects/io
cp plant.c src/base/
cp planted.c src/io/
"$CC" -c plant.c -o objects/base/plant.c.o
"$CC" -c planted.c -o objects/io/planted.c.o
tools/rooms objects | grep -q '^base/plant uses io/planted' || fail "a call against the direction is not found"
mkdir src/attic
echo 'int x;' >src/attic/x.c
tools/rooms | grep -q '^src/attic is no room' || fail "a folder that is no room is not found"
