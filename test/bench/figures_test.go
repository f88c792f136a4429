//go:build bench

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// quantity is what was measured, in a unit; a plain number has none.
type quantity struct {
	value float64
	unit  string
}

func (q quantity) String() string {
	switch {
	case q.unit == "":
		return fmt.Sprintf("%.4g", q.value)
	case q.value == float64(int64(q.value)):
		return fmt.Sprintf("%.0f %s", q.value, q.unit)
	}
	return fmt.Sprintf("%.2f %s", q.value, q.unit)
}

func seconds(d time.Duration) quantity { return quantity{d.Seconds(), "s"} }

func milliseconds(d time.Duration) quantity { return quantity{d.Seconds() * 1000, "ms"} }

func bytesOf(n int64) quantity { return quantity{float64(n >> 20), "MiB"} }

func kibibytes(n int) quantity { return quantity{float64(n >> 10), "KiB"} }

func count(n int) quantity { return quantity{float64(n), ""} }

// percent expects a share of one.
func percent(share float64) quantity { return quantity{share * 100, "%"} }

// figure is one line of the table, and of the results that are kept; test/bench/report reads it.
type figure struct {
	Figure  string    `json:"figure"`
	Target  string    `json:"target"`
	Value   float64   `json:"value"`
	Unit    string    `json:"unit,omitempty"`
	Load    string    `json:"load"`
	Commit  string    `json:"commit"`
	Machine string    `json:"machine"`
	Command string    `json:"command"`
	Time    time.Time `json:"time"`
}

// figures are all of them. Targets of time are told, never asserted: how fast a machine is, is not for a test.
type figures struct {
	mu  sync.Mutex
	all []figure
}

// add notes a figure, with the load of the machine.
func (f *figures) add(t *testing.T, what, target string, measured quantity) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, figure{Figure: what, Target: target, Value: measured.value, Unit: measured.unit, Load: load(), Time: time.Now().UTC().Truncate(time.Second)})
	t.Logf("%s: %s (target %s)", what, measured, target)
}

func (f *figures) print(out io.Writer) {
	if len(f.all) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nFIGURE\tTARGET\tMEASURED\tLOAD")
	for _, line := range f.all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", line.Figure, line.Target, quantity{line.Value, line.Unit}, line.Load)
	}
	_ = w.Flush() // to the terminal
}

// resultsEnv names the results that figures are added to; without it they are those of the commit.
const resultsEnv = "FLEETFLOW_BENCH_RESULTS"

// keep adds the figures to the results of this commit, one a line, and returns their file. Several runs of one commit are its
// spread.
func (f *figures) keep(dir string) (string, error) {
	commit := commitOf()
	path := filepath.Join(dir, cmp.Or(os.Getenv(resultsEnv), commit)+".jsonl")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create the folder of the results: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", fmt.Errorf("open the results: %w", err)
	}
	encoder := json.NewEncoder(file)
	encoder.SetEscapeHTML(false)
	for _, line := range f.all {
		line.Commit = commit
		line.Machine = machine()
		line.Command = command()
		if err := encoder.Encode(line); err != nil {
			_ = file.Close() // the first error counts
			return "", fmt.Errorf("write the results: %w", err)
		}
	}
	return path, file.Close()
}

// commitOf is the commit that is measured, with -dirty after it if the tree has changed since.
func commitOf() string {
	described, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(described))
}

// machine names the processor, its cores and the compiler.
func machine() string {
	model := "unknown processor"
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(content)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s", model, runtime.NumCPU(), runtime.Version())
}

// command is how these figures are measured again.
func command() string {
	again := "make bench"
	if share := os.Getenv(shareEnv); share != "" {
		again = shareEnv + "=" + share + " " + again
	}
	for _, arg := range os.Args[1:] {
		if pattern, ok := strings.CutPrefix(arg, "-test.run="); ok && pattern != "" {
			return fmt.Sprintf("%s TESTFLAGS='-run %q'", again, pattern)
		}
	}
	return again
}

// load is that of the machine in the last minute.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Fields(string(content))[0]
}
