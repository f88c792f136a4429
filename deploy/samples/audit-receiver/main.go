// Command audit-receiver takes what an AuditSink of type Webhook sends, as a SIEM would: it checks the signature by the library of Standard
// Webhooks, drops what it has already, and writes an event a line. It is to try a sink with, and to begin one's own receiver from.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxBody is how long a request may be.
const maxBody = 16 << 20

func main() {
	listen := flag.String("listen", "127.0.0.1:8097", "address to listen on")
	key := flag.String("key", "", "key of the signatures, whsec_ and base64")
	out := flag.String("out", "", "file that the events are added to")
	pid := flag.String("pid", "", "file that the number of the process is written to, by which it is ended")
	flag.Parse()
	if *pid != "" {
		if err := os.WriteFile(*pid, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	if err := serve(*listen, *key, *out); err != nil {
		log.Fatal(err)
	}
}

func serve(listen, key, out string) error {
	check, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	file, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the file of the events: %w", err)
	}
	defer file.Close()
	r := &receiver{check: check, out: file, known: map[string]bool{}}
	server := &http.Server{Addr: listen, Handler: r, ReadHeaderTimeout: 10 * time.Second}
	if err := server.ListenAndServe(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("taking webhooks: %w", err)
	}
	return nil
}

// receiver writes events that it does not have yet.
type receiver struct {
	check *standardwebhooks.Webhook
	out   io.Writer

	mu    sync.Mutex
	known map[string]bool
}

// ServeHTTP answers with 2xx once all events of a request are written: what is answered otherwise comes again.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	if err := r.check.Verify(body, request.Header); err != nil {
		http.Error(w, "the signature is not good, or too old", http.StatusUnauthorized)
		return
	}
	var events []json.RawMessage
	if err := json.Unmarshal(body, &events); err != nil {
		http.Error(w, "this is no batch of events", http.StatusBadRequest)
		return
	}
	if err := r.write(events); err != nil {
		log.Print(err)
		http.Error(w, "the events cannot be written", http.StatusInternalServerError)
	}
}

func (r *receiver) write(events []json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, event := range events {
		var of struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(event, &of); err != nil {
			return fmt.Errorf("reading an event: %w", err)
		}
		if r.known[of.ID] {
			continue
		}
		if _, err := fmt.Fprintf(r.out, "%s\n", event); err != nil {
			return fmt.Errorf("writing an event: %w", err)
		}
		r.known[of.ID] = true
	}
	return nil
}
