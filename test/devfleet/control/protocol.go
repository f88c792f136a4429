// Package control talks to the supervisor of a running local fleet: which components run, and start, stop, restart or
// kill one of them. The demo and the integration tests use it to disturb a fleet. The protocol is JSON over HTTP on a
// unix socket in the fleet's folder.
package control

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"
)

// Verb is what the supervisor is asked to do with a component.
type Verb string

// The verbs of the supervisor.
const (
	// Start lets a stopped component run again and waits until it is ready.
	Start Verb = "start"
	// Stop ends a component, which stays stopped until it is started.
	Stop Verb = "stop"
	// Restart ends a component, starts it at once and waits until it is ready.
	Restart Verb = "restart"
	// Kill ends a component by SIGKILL; it starts again by its restart policy, as after a crash.
	Kill Verb = "kill"
	// Wipe ends a component, deletes its data, starts it and waits until it is ready.
	Wipe Verb = "wipe"
)

// State is where a component is in its life.
type State string

// The states of a component.
const (
	// Stopped: it was asked to stay down, or has not been started yet.
	Stopped State = "stopped"
	// Waiting: what it needs is not ready, or its port is not free.
	Waiting State = "waiting"
	// Starting: its process runs but does not answer its readiness probe yet.
	Starting State = "starting"
	// Ready: it answers its readiness probe, or, having none, its process runs.
	Ready State = "ready"
	// BackOff: its process ended by itself and starts again after a pause.
	BackOff State = "back-off"
)

// Component is the state of one component.
type Component struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	PID      int       `json:"pid,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Restarts int       `json:"restarts"`
	// Reason says why the component is not ready, or how it ended last.
	Reason string `json:"reason,omitempty"`
	// Memory is the resident memory in bytes; 0 where the platform does not tell.
	Memory  int64  `json:"memory,omitempty"`
	LogFile string `json:"logFile"`
}

// Status is the state of the supervisor and all components, in the order they are listed.
type Status struct {
	PID        int         `json:"pid"`
	Started    time.Time   `json:"started"`
	Members    int         `json:"members"`
	Components []Component `json:"components"`
}

// Component returns the component of a name.
func (s *Status) Component(name string) (Component, bool) {
	for _, component := range s.Components {
		if component.Name == name {
			return component, true
		}
	}
	return Component{}, false
}

// Request asks for a verb on a component.
type Request struct {
	Verb      Verb   `json:"verb"`
	Component string `json:"component"`
	// NoWait asks for an answer when the verb is under way: the component then no longer looks as it did before.
	NoWait bool `json:"noWait,omitempty"`
}

// Problem is the body of every answer that is not a success.
type Problem struct {
	Error string `json:"error"`
}

// The paths of the protocol.
const (
	PathStatus   = "/status"
	PathDo       = "/do"
	PathWait     = "/wait"
	PathShutdown = "/shutdown"
)

// maxSocketPath is what fits into the address of a unix socket on every platform (104 bytes on macOS, 108 on Linux).
const maxSocketPath = 100

// SocketPath returns where the supervisor of a folder listens: in the folder, or, when that path is too long for a
// unix socket, in the temporary folder under a name derived from it.
func SocketPath(dir string) string {
	path := filepath.Join(dir, "supervisor.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(os.TempDir(), "fleetflow-"+hex.EncodeToString(sum[:8])+".sock")
}
