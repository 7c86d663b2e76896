package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

func hog(wg *sync.WaitGroup) {
	for until := time.Now().Add(60 * time.Millisecond); time.Now().Before(until); {
	}
	wg.Done()
}

func child() {
	runtime.GOMAXPROCS(2)
	var wg sync.WaitGroup
	wg.Add(20)
	for i := 0; i < 20; i++ {
		go hog(&wg)
	}
	wg.Wait()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func main() {
	if len(os.Args) > 1 {
		child()
		return
	}
	cmd := exec.Command(os.Args[0], "child")
	cmd.Env = append(os.Environ(), "GODEBUG=schedtrace=1")
	pipe, _ := cmd.StderrPipe()
	cmd.Start()
	global, local := false, false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		var length, first, second int
		_, at, found := strings.Cut(lines.Text(), "runqueue=")
		if !found {
			continue
		}
		at = strings.ReplaceAll(strings.ReplaceAll(at, "[ ", "["), " ]", "]")
		if n, _ := fmt.Sscanf(at, "%d [%d %d", &length, &first, &second); n != 3 {
			continue
		}
		global = global || length > 0
		local = local || first > 0 || second > 0
	}
	cmd.Wait()
	fmt.Println("goroutines seen in a local queue:", yes(local))
	fmt.Println("goroutines seen in the global queue:", yes(global))
}
