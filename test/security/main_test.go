//go:build integration

package security

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// target is the fleet that all specs attack.
var target *fleet

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "fleetflow-security-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "security:", err)
		return 1
	}
	if target, err = startFleet(dir); err != nil {
		fmt.Fprintf(os.Stderr, "security: %v; the logs are in %s\n", err, dir)
		return 1
	}
	code := m.Run()
	target.end()
	if code == 0 {
		_ = os.RemoveAll(dir) // what stays is in the folder for temporary files
	} else {
		fmt.Fprintln(os.Stderr, "security: the logs are in", target.LogDir())
	}
	return code
}
