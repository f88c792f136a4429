package onemember

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"
)

// auditPolicy has the API server of the member log every write once it is answered. Whether a deletion is only tried is said in what is
// sent, and of other writes in their address.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [get, list, watch]
  - level: None
    resources:
      - {group: coordination.k8s.io, resources: [leases]}
      - {group: "", resources: [events]}
      - {group: events.k8s.io, resources: [events]}
  - level: Request
    verbs: [delete]
  - level: Metadata
`

// Write is a write that the API server of the member has logged.
type Write struct {
	Verb, Resource, Namespace, Name string
	// User is who has sent it.
	User string
	// Tried is whether it was a dry run, which changes nothing.
	Tried bool
}

func auditLog(dir string) string { return dir + "/member-audit.log" }

// auditArguments writes the policy and returns what an API server is told to follow it.
func auditArguments(dir string) ([]string, error) {
	policy := dir + "/member-audit-policy.yaml"
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + auditLog(dir)}, nil
}

// Writes returns the writes that the API server of the member has logged since a time, of objects for which about returns true. A write
// is logged before its client gets the answer.
func (r *Rig) Writes(since time.Time, about func(Write) bool) ([]Write, error) {
	content, err := os.ReadFile(auditLog(r.Fleet.Dir))
	if err != nil {
		return nil, fmt.Errorf("reading the audit log of the member: %w", err)
	}
	return readWrites(content, since, about)
}

// logged is an event of an audit log, as far as it is read.
type logged struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	RequestObject struct {
		DryRun []string `json:"dryRun"`
	} `json:"requestObject"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// readWrites reads an audit log. A last line that is not whole yet is left out.
func readWrites(content []byte, since time.Time, about func(Write) bool) ([]Write, error) {
	var writes []Write
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	for line := range bytes.Lines(content) {
		var event logged
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading a line of the audit log: %w", err)
		}
		address, err := url.Parse(event.RequestURI)
		if err != nil {
			return nil, fmt.Errorf("reading a line of the audit log: %w", err)
		}
		w := Write{
			Verb: event.Verb, Resource: event.ObjectRef.Resource, Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name,
			User:  event.User.Username,
			Tried: slices.Contains(address.Query()["dryRun"], "All") || slices.Contains(event.RequestObject.DryRun, "All"),
		}
		if event.ObjectRef.Subresource != "" {
			w.Resource += "/" + event.ObjectRef.Subresource
		}
		if !event.RequestReceivedTimestamp.Before(since) && about(w) {
			writes = append(writes, w)
		}
	}
	return writes, nil
}
