//go:build bench

package bench

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// figure is one line of the table.
type figure struct{ what, target, measured, load string }

// figures are all of them. Targets of time are told, never asserted: how fast a machine is, is not for a test.
type figures struct {
	mu  sync.Mutex
	all []figure
}

// add notes a figure, with the load of the machine.
func (f *figures) add(t *testing.T, what, target, measured string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, figure{what: what, target: target, measured: measured, load: load()})
	t.Logf("%s: %s (target %s)", what, measured, target)
}

func (f *figures) print(out io.Writer) {
	if len(f.all) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nFIGURE\tTARGET\tMEASURED\tLOAD")
	for _, line := range f.all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", line.what, line.target, line.measured, line.load)
	}
	_ = w.Flush() // to the terminal
}

// load is that of the machine in the last minute.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Fields(string(content))[0]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func bytesOf(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
