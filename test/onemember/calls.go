package onemember

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// Call is a kind of request to an API server.
type Call struct {
	// Verb is the API server's word for what was asked: GET, LIST, POST, PUT, PATCH, APPLY, DELETE. Watches are left out:
	// they count when they end, and the server has many of its own.
	Verb string
	// Resource is what it was asked of, with the subresource, if any, after a slash.
	Resource string
}

// Rehearsal stands in the place of the verb of a write that is only to be tried: it changes nothing.
const Rehearsal = "DRY RUN"

// Calls counts requests by their kind.
type Calls map[Call]int

// background are resources that the servers and controllers themselves ask for all the time. They also look at
// discovery, whose paths stand in the place of a resource.
var background = []string{
	"leases", "events", "services", "ipaddresses", "servicecidrs", "serviceaccounts", "endpoints", "endpointslices",
	"flowschemas", "flowschemas/status", "prioritylevelconfigurations", "prioritylevelconfigurations/status",
}

// Calls asks the API server of a cluster which requests it has answered so far.
func (r *Rig) Calls(ctx context.Context, cluster string) (Calls, error) {
	return CallsOf(ctx, r.configs[cluster])
}

// CallsOf asks an API server which requests it has answered so far, for all its clients, without those that the control
// plane makes by itself.
func CallsOf(ctx context.Context, config *rest.Config) (Calls, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the metrics of %s: %w", config.Host, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	response, err := transport.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of %s: %w", config.Host, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading the metrics of %s: %s", config.Host, response.Status)
	}
	return readCalls(response.Body)
}

// readCalls adds up the samples of apiserver_request_total.
func readCalls(metrics io.Reader) (Calls, error) {
	calls := Calls{}
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !found {
			continue
		}
		labels, value, found := strings.Cut(rest, "} ")
		if !found {
			return nil, fmt.Errorf("cannot read the sample %q", lines.Text())
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the sample %q: %w", lines.Text(), err)
		}
		resource := label(labels, "resource")
		if sub := label(labels, "subresource"); sub != "" {
			resource += "/" + sub
		}
		if resource == "" || label(labels, "verb") == "WATCH" || strings.HasPrefix(resource, "/") || slices.Contains(background, resource) {
			continue
		}
		verb := label(labels, "verb")
		if label(labels, "dry_run") != "" {
			verb = Rehearsal
		}
		calls[Call{Verb: verb, Resource: resource}] += int(count)
	}
	return calls, lines.Err()
}

func label(labels, name string) string {
	_, rest, found := strings.Cut(","+labels, ","+name+`="`)
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// Since returns what has been asked in addition to an earlier count.
func (c Calls) Since(before Calls) Calls {
	added := Calls{}
	for call, count := range c {
		if count > before[call] {
			added[call] = count - before[call]
		}
	}
	return added
}

// Of returns the part of the calls that is about these resources, their subresources included.
func (c Calls) Of(resources ...string) Calls {
	part := Calls{}
	for call, count := range c {
		resource, _, _ := strings.Cut(call.Resource, "/")
		if slices.Contains(resources, resource) {
			part[call] = count
		}
	}
	return part
}

// Total returns how many calls there were.
func (c Calls) Total() int {
	total := 0
	for _, count := range c {
		total += count
	}
	return total
}

// Writes returns the part of the calls that changes anything.
func (c Calls) Writes() Calls {
	writes := Calls{}
	for call, count := range c {
		if !slices.Contains([]string{"GET", "LIST", Rehearsal}, call.Verb) {
			writes[call] = count
		}
	}
	return writes
}

// String lists the calls in a stable order.
func (c Calls) String() string {
	var lines []string
	for call, count := range c {
		lines = append(lines, fmt.Sprintf("%d %s %s", count, call.Verb, call.Resource))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
