-- What wrk found, as one line of JSON, for bench/http: wrk's own report is rounded and
-- has units.
function done(summary)
	local errors = 0

	for _, count in pairs(summary.errors) do
		errors = errors + count
	end
	print(string.format('{"requests":%d,"bytes":%d,"errors":%d,"us":%d}',
	                    summary.requests, summary.bytes, errors, summary.duration))
end
