# goro.bash - completes the words of the goro command in bash.

# Processes of this user that run goroutines.
_goro_pids()
{
	local comm
	for comm in /proc/[0-9]*/task/*/comm; do
		[[ -O $comm && $(<"$comm") == goro-sysmon ]] 2>/dev/null && echo "${comm:6}"
	done | cut -d/ -f1
}

_goro()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "run build new dump top trace profile explain doctor version --help" -- "$word")
		return
	fi
	if [[ $word == -* ]]; then
		local options=--help
		case ${COMP_WORDS[1]} in
		run) options+=" --calls" ;;
		build) options+=" --calls -o" ;;
		top) options+=" -n -d" ;;
		trace) options+=" -o --html --perfetto --seconds --from --to" ;;
		explain) options+=" -o --html --list --source --from --to" ;;
		profile) options+=" -o --html --top --tree --kind --seconds --value" ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
		return
	fi
	case ${COMP_WORDS[1]} in
	run | build)
		compopt -o filenames 2>/dev/null || true
		if [[ $before == -o ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		else
			mapfile -t COMPREPLY < <({
				compgen -d -- "$word"
				compgen -f -- "$word" | grep -E '\.(c|cc|cpp|cxx|c\+\+|C|S|o|a)$'
			} | sort -u)
		fi
		;;
	trace)
		compopt -o filenames 2>/dev/null || true
		case $before in
		--from | --to | --seconds) ;;
		-o | --html | --perfetto) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
		*) mapfile -t COMPREPLY < <(compgen -f -- "$word"; compgen -W "$(_goro_pids)" -- "$word") ;;
		esac
		;;
	profile)
		compopt -o filenames 2>/dev/null || true
		case $before in
		--kind) mapfile -t COMPREPLY < <(compgen -W "cpu goroutine block mutex leak threads" -- "$word") ;;
		--top | --seconds | --value) ;;
		-o | --html) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
		*) mapfile -t COMPREPLY < <(compgen -f -- "$word"; compgen -W "$(_goro_pids)" -- "$word") ;;
		esac
		;;
	explain)
		compopt -o filenames 2>/dev/null || true
		case $before in
		--from | --to) ;;
		-o | --html) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "spawn steal channel call hog poll" -- "$word"; compgen -f -- "$word") ;;
		esac
		;;
	dump | top)
		[[ $before == -[nd] ]] || mapfile -t COMPREPLY < <(compgen -W "$(_goro_pids)" -- "$word")
		;;
	esac
}
complete -F _goro goro
