package main

import (
	"fmt"
	"runtime"
)

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func main() {
	fmt.Println("at first as many as CPUs:", yes(runtime.GOMAXPROCS(0) == runtime.NumCPU()))
	runtime.GOMAXPROCS(3)
	fmt.Println("set to 3, it is", runtime.GOMAXPROCS(0))
	fmt.Println("set to 1, it was", runtime.GOMAXPROCS(1))
	runtime.GOMAXPROCS(runtime.NumCPU()) // Go 1.25 has SetDefaultGOMAXPROCS
	fmt.Println("follows the machine again:", yes(runtime.GOMAXPROCS(0) == runtime.NumCPU()))
}
