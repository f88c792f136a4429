package fleetview

import (
	"maps"
	"slices"
	"strings"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// pastRecords are what is on record of a fleet: by the placement that it is about, itself or one of its runs, and the rest under none.
type pastRecords map[hub.Ref][]fleetflowv1alpha1.AuditRecord

// recordsOf sorts records by what they are about.
func recordsOf(all []*fleetflowv1alpha1.AuditRecord) pastRecords {
	sorted := pastRecords{}
	for _, record := range all {
		of := hub.Ref{}
		if name := record.Spec.PlacementName; name != "" {
			of = hub.Ref{Kind: hub.KindPlacement, Namespace: record.PlacementNamespace(), Name: name}
		}
		sorted[of] = append(sorted[of], *record)
	}
	for _, records := range sorted {
		fleetflowv1alpha1.SortRecords(records)
	}
	return sorted
}

// takeRecordsOf returns the records of a placement that is there, with which its history is told.
func (r pastRecords) takeRecordsOf(placement hub.Ref) []fleetflowv1alpha1.AuditRecord {
	defer delete(r, placement)
	return r[placement]
}

// deed is what was done to what, and when.
type deed struct {
	what, name string
	at         int64
}

func deedOf(what, name string, at time.Time) deed { return deed{what, name, at.Unix()} }

// addLeft adds what is left: of placements that are gone, of members, of holds and of overrides. Of what an object tells that is still there,
// the record says who it was.
func (r pastRecords) addLeft(all []Happening) []Happening {
	told := map[deed]int{}
	for i, h := range all {
		if h.What == aboutMember || h.What == aboutHold {
			told[deedOf(h.What, h.Name, h.At)] = i
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(r), func(a, b hub.Ref) int { return strings.Compare(a.String(), b.String()) }) {
		for i := range r[of] {
			entry := recordedEntry(&r[of][i])
			if at, is := told[deedOf(entry.What, entry.Name, entry.At)]; is {
				if entry.By != "" {
					all[at].By = entry.By
					all[at].Channel = entry.Channel
					all[at].Verified = entry.Verified
				}
				continue
			}
			all = append(all, happeningOnRecord(of, entry))
		}
	}
	return all
}

// happeningOnRecord returns what a record tells that is of no placement that is there.
func happeningOnRecord(of hub.Ref, entry Entry) Happening {
	h := happeningOf(of, entry, map[hub.Ref]updaterun.State{})
	h.Path = ""
	switch entry.What {
	case aboutHold:
		h.Path = "/holds"
	case aboutMember:
		h.Of = hub.Ref{Kind: hub.KindMember, Name: entry.Name}
	}
	return h
}
