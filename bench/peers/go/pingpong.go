package main

import "fmt"

const pingpongTrips = 20000 // per round

func ponger(ping, pong chan uint64) {
	for v := range ping {
		pong <- v + 1
	}
}

func pingpongRound() (v uint64) {
	ping, pong := make(chan uint64), make(chan uint64)
	go ponger(ping, pong)
	for i := 0; i < pingpongTrips; i++ {
		ping <- v
		v = <-pong
	}
	close(ping)
	return v
}

func pingpong() {
	ns, check := measure(pingpongRound, pingpongTrips)
	report("pingpong", ns, "ns", fmt.Sprint(check))
}
