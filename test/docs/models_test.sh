#!/usr/bin/env bash
# The models name files, functions and titles that are there; one that is not is found.
. "$SOURCE_DIR/test/script.sh"
command -v python3 >/dev/null || skip "needs python3"
cd "$SOURCE_DIR"
python3 test/models.py || fail "these names lead nowhere"

mkdir -p "$work/src/room" "$work/test/models"
printf '/* "A title" */\nint here(void) { return 0; }\n' >"$work/src/room/here.c"
: >"$work/test/models/memory.h"
cat >"$work/test/models/one.pml" <<'END'
/* See "A title" in src/room/here.c, "Another" in src/room/here.c and src/room/gone.c. */
/* src/room/here.c here, gone_one */
/* It calls gone_two. */
END
echo '| `two.pml` | x |' >"$work/test/models/README.md"
cp test/models.py "$work/test"
cd "$work"
python3 test/models.py >found && fail "wrong names are not found"
cat >expected <<'END'
test/models/README.md: no line for one.pml
test/models/README.md: there is no two.pml
test/models/one.pml: src/room/here.c has no "Another"
test/models/one.pml: src/room/here.c has no gone_one
test/models/one.pml: there is no gone_one
test/models/one.pml: there is no gone_two
test/models/one.pml: there is no src/room/gone.c
END
diff expected found || fail "other names are found than are wrong"
