package contract

import (
	"encoding/json"
	"strings"
)

// Batch is changes of clusters, each of another one. Every batch is in a history twice, as a proposal and as a request: there, changes that
// are alike are one entry, with the names of their clusters and the UIDs of the bindings.
type Batch []Change

// batchEntry is one entry of a batch: one change, or several that are alike.
type batchEntry struct {
	Change
	// Clusters are name/UID each.
	Clusters []string `json:"clusters,omitempty"`
}

// MarshalJSON writes changes that are alike as one entry, where the first of them is.
func (b Batch) MarshalJSON() ([]byte, error) {
	entries := make([]batchEntry, 0, len(b))
	entryOf := map[Change]int{}
	for _, change := range b {
		kind := change
		kind.Cluster = ""
		kind.UID = ""
		i, known := entryOf[kind]
		switch {
		case change.Binding != "" || change.Eviction != "":
			entries = append(entries, batchEntry{Change: change})
		case known:
			entries[i].add(change)
		default:
			entryOf[kind] = len(entries)
			entries = append(entries, batchEntry{Change: change})
		}
	}
	return json.Marshal(entries)
}

func (e *batchEntry) add(change Change) {
	if len(e.Clusters) == 0 {
		e.Clusters = []string{clusterAndUID(e.Change)}
		e.Cluster = ""
		e.UID = ""
	}
	e.Clusters = append(e.Clusters, clusterAndUID(change))
}

func clusterAndUID(change Change) string { return change.Cluster + "/" + change.UID }

// UnmarshalJSON reads the changes of all entries.
func (b *Batch) UnmarshalJSON(text []byte) error {
	var entries []batchEntry
	if err := json.Unmarshal(text, &entries); err != nil {
		return err
	}
	*b = make(Batch, 0, len(entries))
	for _, e := range entries {
		if len(e.Clusters) == 0 {
			*b = append(*b, e.Change)
		}
		for _, cluster := range e.Clusters {
			change := e.Change
			change.Cluster, change.UID, _ = strings.Cut(cluster, "/")
			*b = append(*b, change)
		}
	}
	return nil
}
