//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writes counts what the hub's API server was asked to write, by "<resource>" or "<resource>/<subresource>".
type writes map[string]float64

// apart are not counted as a part of an update: they come by themselves, or are only told about it.
var apart = []string{"events", "leases", "internalmemberclusters/status", "memberclusters/status", "clusterprofiles/status", "placementdecisions", "clusterresourceplacements/status"}

var (
	requestLine = regexp.MustCompile(`^apiserver_request_total\{(.*)\} ([0-9.e+]+)$`)
	labelInLine = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// readsSoFar counts what was read, by "<verb> <resource>".
func (f *fleet) readsSoFar(ctx context.Context) (writes, error) {
	reads := writes{}
	err := f.requests(ctx, func(labels map[string]string, number float64) {
		if verb := labels["verb"]; verb == "GET" || verb == "LIST" {
			reads[strings.ToLower(verb)+" "+labels["resource"]] += number
		}
	})
	return reads, err
}

// writesSoFar reads the API server's own count. Requests that were refused are not in it: they wrote nothing.
func (f *fleet) writesSoFar(ctx context.Context) (done, refused writes, err error) {
	done = writes{}
	refused = writes{}
	err = f.requests(ctx, func(labels map[string]string, number float64) {
		if !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, labels["verb"]) {
			return
		}
		name := labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		if strings.HasPrefix(labels["code"], "2") {
			done[name] += number
		} else {
			refused[name] += number
		}
	})
	return done, refused, err
}

// requests hands on what the API server has counted of each sort of request.
func (f *fleet) requests(ctx context.Context, see func(labels map[string]string, number float64)) error {
	content, err := f.raw.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("reading the API server's metrics: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		match := requestLine.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		labels := map[string]string{}
		for _, label := range labelInLine.FindAllStringSubmatch(match[1], -1) {
			labels[label[1]] = label[2]
		}
		number, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			return fmt.Errorf("reading %s: %w", lines.Text(), err)
		}
		see(labels, number)
	}
	return lines.Err()
}

// meter starts to count; what it returns ends that.
func (f *fleet) meter(t *testing.T) func() (done, refused writes) {
	t.Helper()
	before, refusedBefore, err := f.writesSoFar(t.Context())
	require.NoError(t, err)
	return func() (writes, writes) {
		after, refusedAfter, err := f.writesSoFar(t.Context())
		require.NoError(t, err)
		return after.minus(before), refusedAfter.minus(refusedBefore)
	}
}

func (w writes) minus(before writes) writes {
	out := writes{}
	for name, n := range w {
		if n > before[name] {
			out[name] = n - before[name]
		}
	}
	return out
}

// counted are those that an update costs.
func (w writes) counted() float64 {
	sum := 0.0
	for name, n := range w {
		if !slices.Contains(apart, name) {
			sum += n
		}
	}
	return sum
}

func (w writes) without(names ...string) writes {
	out := maps.Clone(w)
	for _, name := range names {
		delete(out, name)
	}
	return out
}

func (w writes) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		parts = append(parts, fmt.Sprintf("%s %.0f", name, w[name]))
	}
	return strings.Join(parts, ", ")
}

// quietFor is how long nothing must have been written for the hub to be at rest.
const quietFor = 2 * time.Second

// awaitQuiet waits until nothing is written but what is written for ever.
func (f *fleet) awaitQuiet(t *testing.T) {
	t.Helper()
	ctx := within(t, 10*time.Minute)
	for {
		before, _, err := f.writesSoFar(ctx)
		require.NoError(t, err)
		pause(quietFor)
		after, _, err := f.writesSoFar(ctx)
		require.NoError(t, err)
		if len(after.minus(before).without("events", "leases", "internalmemberclusters/status", "memberclusters/status", "clusterprofiles/status", "placementdecisions")) == 0 {
			return
		}
	}
}
