package agent

import (
	"flag"
	"fmt"
)

// Profiles says whether and where an agent serves profiles of itself.
type Profiles struct {
	enabled bool
	port    int
}

// Add adds the flags of the profiles.
func (p *Profiles) Add(f *flag.FlagSet, port int) {
	f.BoolVar(&p.enabled, "enable-pprof", false, "serve Go's profiles of the process at /debug/pprof, to the Pod itself only: use kubectl port-forward")
	f.IntVar(&p.port, "pprof-port", port, "port of the profiles")
}

// Check names the flag that is wrong.
func (p *Profiles) Check() error {
	if p.port < 1 || p.port > 65535 {
		return fmt.Errorf("--pprof-port is %d; it must be from 1 to 65535", p.port)
	}
	return nil
}

// Address returns what a manager wants: empty if there are to be no profiles. They tell what is in the memory of the process,
// so that only who may get into its Pod can have them.
func (p *Profiles) Address() string {
	if !p.enabled {
		return ""
	}
	return fmt.Sprintf("127.0.0.1:%d", p.port)
}
