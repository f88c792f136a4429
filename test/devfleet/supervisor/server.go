package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

// Serve runs the supervisor and its control socket until the context ends or a shutdown is requested; it returns when
// every child is gone.
func (s *Supervisor) Serve(ctx context.Context, socket string) error {
	// Two supervisors on one folder are kept apart by the caller's lock, so a socket found here is a dead one's.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an old control socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listening on the control socket: %w", err)
	}
	ctx, shutdown := context.WithCancel(ctx)
	defer shutdown()
	ended := make(chan struct{})
	server := &http.Server{Handler: s.routes(shutdown, ended), ReadHeaderTimeout: 5 * time.Second}
	serving := make(chan error, 1)
	go func() { serving <- server.Serve(listener) }()
	s.Run(ctx)
	close(ended)
	// The answer to a shutdown request is still on its way.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("closing the control socket: %w", err)
	}
	if err := <-serving; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the control socket: %w", err)
	}
	return nil
}

func (s *Supervisor) routes(shutdown func(), ended <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+control.PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, s.Status(), nil)
	})
	mux.HandleFunc("POST "+control.PathDo, func(w http.ResponseWriter, r *http.Request) {
		asked := control.Request{}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			respond(w, nil, fmt.Errorf("decoding the request: %w", err))
			return
		}
		respond(w, struct{}{}, s.Do(r.Context(), asked))
	})
	mux.HandleFunc("GET "+control.PathWait, func(w http.ResponseWriter, r *http.Request) {
		respond(w, struct{}{}, s.WaitReady(r.Context(), r.URL.Query().Get("component")))
	})
	mux.HandleFunc("POST "+control.PathShutdown, func(w http.ResponseWriter, _ *http.Request) {
		shutdown()
		<-ended
		respond(w, struct{}{}, nil)
	})
	return mux
}

func respond(w http.ResponseWriter, body any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		body = control.Problem{Error: err.Error()}
	}
	// An error here means the client is gone.
	_ = json.NewEncoder(w).Encode(body)
}
