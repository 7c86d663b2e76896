"""What bench/run is made of, in reading order:

peers       who is measured: how its programs are built and called
measuring   the rounds, the samples, the machine meanwhile
results     the file with everything measured: written, read, merged
comparing   ratios with their intervals, goals, the claims about all of it
terminal    the tables on the terminal
plots       charts, as SVG
page        the page with all of it
"""
