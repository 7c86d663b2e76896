# columns.sh - reading the tables that the exercises print: used by their `check` scripts.

# table NAME < OUTPUT: its lines, the first with the names of its columns.
table() { awk -v name="$1" '/^== / { on = $2 == name; next } on && NF'; }

# is FILE TABLE 'CONDITION': whether it holds, in awk's words, in each line of the table, where
# v["COLUMN"] is a value of the line. Prints the lines where it does not. A table without lines is wrong.
is()
{
	table "$2" <"$1" | awk '
		NR == 1 { for (i = 1; i <= NF; i++) name[i] = $i; columns = NF; next }
		{
			for (i = 1; i <= columns; i++) v[name[i]] = $i
			if (NF != columns || !('"$3"')) { print "not so, '"${3//\"/\\\"}"': " $0; wrong = 1 }
		}
		END { if (NR < 2) print "no table '"$2"'"; exit wrong || NR < 2 }'
}

# runs FILE COMMAND...: whether it succeeds within a minute; what it prints is in the file.
runs()
{
	local out=$1; shift
	timeout --kill-after=5 60 "$@" >"$out" 2>"$work/err" ||
		{ echo "$* ends with status $?"; cat "$out" "$work/err"; return 1; }
}

# The README's tables and the pictures are those that were measured.
reported()
{
	command -v python3 >/dev/null || { skipped report "there is no python3"; return; }
	../report check . && ok report || failed report "see above"
}
