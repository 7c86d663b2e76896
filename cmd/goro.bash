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
		mapfile -t COMPREPLY < <(compgen -W "run build new dump top doctor version --help" -- "$word")
		return
	fi
	if [[ $word == -* ]]; then
		local options=--help
		case ${COMP_WORDS[1]} in
		build) options+=" -o" ;;
		top) options+=" -n -d" ;;
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
	dump | top)
		[[ $before == -[nd] ]] || mapfile -t COMPREPLY < <(compgen -W "$(_goro_pids)" -- "$word")
		;;
	esac
}
complete -F _goro goro
