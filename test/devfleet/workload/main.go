// Command workload is what Pods of tests run on real nodes: it serves, starts slowly, ends with an error, takes memory without end,
// asks a server, or only waits, as its first argument says.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	// block is how much memory is taken at a time; a page of each is written to with every kibibyte.
	block = 1 << 20
	page  = 1 << 10
	// headerTimeout bounds how long a client may take to ask.
	headerTimeout = 5 * time.Second
)

func main() {
	mode := "serve"
	args := os.Args[1:]
	if len(args) > 0 {
		mode = args[0]
		args = args[1:]
	}
	flags := flag.NewFlagSet(mode, flag.ExitOnError)
	address := flags.String("address", ":8080", "where serve and slow listen, and the URL that get asks for")
	say := flags.String("say", "ok", "what serve answers, and crash says as its last words")
	after := flags.Duration("after", 0, "how long slow and crash take")
	tokenFile := flags.String("token-file", "", "file with the token that get shows")
	code := flags.Int("code", 1, "exit code of crash")
	megabytes := flags.Int("megabytes", 0, "how much crash prints before its last words")
	_ = flags.Parse(args) // ends the program by itself
	switch mode {
	case "serve":
		serve(*address, *say, 0)
	case "slow":
		serve(*address, *say, *after)
	case "crash":
		time.Sleep(*after)
		shout(*megabytes)
		fmt.Fprintln(os.Stderr, *say)
		os.Exit(*code)
	case "eat":
		eat()
	case "get":
		get(*address, *tokenFile)
	case "pause":
		pause()
	default:
		fmt.Fprintf(os.Stderr, "workload: no mode %q: serve, slow, crash, eat, get, pause\n", mode)
		os.Exit(2)
	}
}

// serve answers every request, those to /ready only after a time.
func serve(address, say string, after time.Duration) {
	began := time.Now()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/ready") && time.Since(began) < after {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/broken" {
			http.Error(w, "broken on purpose", http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, say)
	})
	go pause()
	server := &http.Server{Addr: address, ReadHeaderTimeout: headerTimeout}
	fmt.Fprintln(os.Stderr, "workload:", server.ListenAndServe())
	os.Exit(1)
}

// shout prints much.
func shout(megabytes int) {
	line := []byte(strings.Repeat("#", page-1) + "\n")
	for range megabytes << 10 {
		_, _ = os.Stderr.Write(line) // what is missing is seen
	}
}

// eat takes memory until the kernel ends it.
func eat() {
	var taken [][]byte
	for {
		next := make([]byte, block)
		for i := 0; i < block; i += page {
			next[i] = 1
		}
		taken = append(taken, next)
		fmt.Fprintf(os.Stderr, "%d MiB\n", len(taken))
	}
}

// get prints what a server answers. Whose certificate it shows does not matter here.
func get(url, tokenFile string) {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "workload: reading the token:", err)
		os.Exit(1)
	}
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	response, err := (&http.Client{Transport: transport, Timeout: headerTimeout}).Do(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, "workload: asking:", err)
		os.Exit(1)
	}
	defer func() { _ = response.Body.Close() }()
	fmt.Println(response.Status)
	_, _ = io.Copy(os.Stdout, response.Body) // what is missing is seen
}

// pause waits for the signal to end. As process 1 of a Pod it collects processes that have lost their parents.
func pause() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			os.Exit(0)
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil) // there may be none
		}
	}
}
