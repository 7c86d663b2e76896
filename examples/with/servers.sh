# servers.sh - what the .check files here share: servers on loopback, each in $work and on
# a port of its own, which end with the check, and what is asserted of all programs.

clients=${WITH_CLIENTS:-1000}	# requests under way at once
parked_threads=20		# a program that parks has at most so many

set -o pipefail

# Descriptors for all clients, and for as many in a server that this shell starts.
ulimit -n "$(ulimit -H -n)" 2>/dev/null || true

# As another user, if we are root: PostgreSQL insists.
as_user()
{
	local user=$1; shift
	if [ "$(id -u)" = 0 ]; then
		exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all "$@"
	else
		exec "$@"
	fi
}

# Sets WITH_POSTGRES. A process for each connection, and a query on each at once: these
# are nice, so that the clients get a CPU as they would with the server elsewhere.
start_postgres()
{
	local bin port
	bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
	[ -x "$bin/postgres" ] || skip "there is no PostgreSQL"
	port=$(free_port)
	mkdir "$work/pg"
	[ "$(id -u)" != 0 ] || chown postgres:postgres "$work/pg"
	(cd "$work/pg" && as_user postgres "$bin/initdb" -D "$work/pg/data" -A trust -U goro -N) \
		>"$work/initdb.log" 2>&1 || { cat "$work/initdb.log"; return 1; }
	start as_user postgres nice -n 19 "$bin/postgres" -D "$work/pg/data" -p "$port" -k "$work/pg" \
		-h 127.0.0.1 -c max_connections=$((clients + 20)) -c fsync=off
	await "$bin/pg_isready" -h 127.0.0.1 -p "$port" -U goro -d postgres ||
		{ cat "$work/log"; return 1; }
	export WITH_POSTGRES="hostaddr=127.0.0.1 port=$port user=goro dbname=postgres"
}

# Sets WITH_REDIS, a port.
start_redis()
{
	command -v redis-server >/dev/null || skip "there is no redis-server"
	export WITH_REDIS
	WITH_REDIS=$(free_port)
	start redis-server --port "$WITH_REDIS" --bind 127.0.0.1 --save '' --appendonly no \
		--dir "$work" --tcp-backlog 4096 --maxclients $((clients + 20))
	await redis-cli -p "$WITH_REDIS" ping
}

# Sets WITH_HTTP and WITH_HTTPS, ports of an nginx that takes a second for /slow, and as
# long as it likes for /endless; and WITH_CA, the certificate of who has signed its
# certificate.
start_nginx()
{
	command -v nginx >/dev/null || skip "there is no nginx"
	export WITH_HTTP WITH_HTTPS WITH_CA=$work/ca.pem
	WITH_HTTP=$(free_port) WITH_HTTPS=$(free_port)
	make_certificate
	mkdir "$work/www"
	head -c 2000 /dev/zero | tr '\0' x >"$work/www/slow"
	head -c 100 "$work/www/slow" >"$work/www/quick"
	head -c 100000000 /dev/zero >"$work/www/large"
	ln "$work/www/large" "$work/www/endless"
	chmod -R a+rX "$work"
	cat >"$work/nginx.conf" <<-CONF
		daemon off;
		pid $work/nginx.pid;
		error_log $work/nginx.log;
		worker_rlimit_nofile $((3 * clients + 100));
		events { worker_connections $((2 * clients + 100)); }
		http {
			access_log off;
			client_body_temp_path $work; proxy_temp_path $work;
			fastcgi_temp_path $work; uwsgi_temp_path $work; scgi_temp_path $work;
			server {
				listen 127.0.0.1:$WITH_HTTP backlog=4096;
				listen 127.0.0.1:$WITH_HTTPS ssl backlog=4096;
				ssl_certificate $work/server.pem;
				ssl_certificate_key $work/server.key;
				root $work/www;
				keepalive_requests 1000000;
				location = /slow { limit_rate 1000; }
				location = /endless { limit_rate 1000; }
			}
		}
	CONF
	start nginx -c "$work/nginx.conf" -e "$work/nginx.log"
	await listens "$WITH_HTTPS" || { cat "$work/nginx.log" "$work/log"; return 1; }
}

# A certificate for localhost and 127.0.0.1, in $work/server.pem, with its key; signed by
# $work/ca.pem.
make_certificate()
{
	command -v openssl >/dev/null || skip "there is no openssl"
	(cd "$work" &&
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=CA \
		-keyout ca.key -out ca.pem &&
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost \
		-keyout server.key -out server.csr &&
	openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
		-extfile <(echo subjectAltName=DNS:localhost,IP:127.0.0.1) -out server.pem) \
		>"$work/openssl.log" 2>&1 || { cat "$work/openssl.log"; return 1; }
}

# Sets WITH_NOBODY, a port that nobody listens on, and WITH_SILENT, one where nobody
# answers.
start_trouble()
{
	export WITH_NOBODY WITH_SILENT
	WITH_SILENT=$(free_port)
	start python3 -c "import socket, time
s = socket.create_server(('127.0.0.1', $WITH_SILENT), backlog=100)
time.sleep(1000)"
	await listens "$WITH_SILENT"
	WITH_NOBODY=$(free_port)
}

# with_names COMMAND...: with a name server of ours as the only one. It starts that first.
# getaddrinfo asks whom /etc/resolv.conf names: in a mount namespace it is another file,
# and nobody else notices.
with_names()
{
	local server=127.0.97.53
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || skip "not root, and names are root's"
	if [ ! -e "$work/resolv.conf" ]; then
		printf 'nameserver %s\noptions timeout:30\n' "$server" >"$work/resolv.conf"
		echo 'hosts: files dns' >"$work/nsswitch.conf"
		start python3 nameserver.py "$server"
		await python3 -c "import socket; socket.create_connection(('$server', 53))"
	fi
	unshare -m sh -c '
		mount --bind "$0/resolv.conf" "$(readlink -f /etc/resolv.conf)" &&
		mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf && exec "$@"' "$work" "$@"
}

launcher=	# what runs the program
fewer=50	# clients of the ways that keep a thread each, unless WITH_BENCH is set

# measured CLIENTS WAY [QUICK]: runs the program, and shows what it says.
measured()
{
	printf '%-8s ' "$name"
	$launcher timeout --kill-after=5 100 "$program" "$2" "$1" "${@:3}" | tee "$work/said"
}

# beside [CLIENTS QUICK]: the ways that keep a thread for each client; and all three, with
# so many clients that make so many quick requests each. WITH_BENCH=ROUNDS measures, all
# three.
beside()
{
	local way round busy=$fewer
	if [ -n "${WITH_BENCH:-}" ]; then
		fewer=$clients busy=${1:-}
	fi
	for round in $(seq "${WITH_BENCH:-1}"); do
		for way in ${WITH_BENCH:+park} block thread; do
			measured "$fewer" "$way"
		done
		[ $# = 0 ] || for way in park block thread; do
			measured "$busy" "$way" "$2"
		done
	done
}

# parked: that all clients are under way at once, on few threads.
parked()
{
	few_in_five measured "$clients" park
	all_under_way
}

# few_in_five COMMAND...: few threads, in one of five tries: a goroutine whose thread gets
# no CPU keeps it, so what else the machine does adds some.
few_in_five()
{
	local try
	for try in 1 2 3 4 5; do
		"$@"
		! few_threads || return 0
	done
	return 1
}

all_under_way()
{
	awk -v clients="$clients" '
		$2 != clients { print "only " $2 " requests under way at once"; exit 1 }' "$work/said"
}

few_threads()
{
	awk -v most="$parked_threads" '
		$10 > most { print $10 " threads, more than " most; exit 1 }' "$work/said"
}
