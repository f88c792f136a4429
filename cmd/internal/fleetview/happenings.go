package fleetview

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// FleetFacts are what the history of a fleet is made from: as much as is watched of it.
type FleetFacts struct {
	Members    []*clusterv1beta1.MemberCluster
	Placements []hub.Placement
	// Runs and Bindings are those of each placement, and Approvals those of each run.
	Runs      map[hub.Ref][]hub.Run
	Bindings  map[hub.Ref][]hub.Binding
	Approvals map[hub.Ref][]hub.Approval
	// States are those of runs that were read before: the others are read.
	States     map[hub.Ref]updaterun.State
	Evictions  []*placementv1beta1.ClusterResourcePlacementEviction
	Holds      []*fleetflowv1alpha1.RolloutHold
	Exemptions []fleetflowv1alpha1.RolloutExemption
	// Records are what is on record of the time that is asked for.
	Records []*fleetflowv1alpha1.AuditRecord
	Now     time.Time
}

// Happening is something that has happened in a fleet.
type Happening struct {
	Entry
	// Of is the placement or the cluster that it is about; empty for the whole fleet.
	Of hub.Ref `json:"of,omitzero"`
	// Bad says that something has gone wrong.
	Bad bool `json:"bad,omitempty"`
	// Path is where a dashboard says more of it.
	Path string `json:"-"`
}

// What happenings are about, beside what entries of the history of a placement are.
const (
	aboutMember    = "member"
	aboutHold      = "hold"
	aboutExemption = "exemption"
	aboutRun       = "run"
	aboutRehearsal = "rehearsal"
)

// About are all the words for what happenings are about.
var About = []string{"placement", "policy", "snapshot", aboutRun, aboutRehearsal, "approval", "eviction", aboutHold, aboutExemption, aboutMember}

// Happenings returns what has happened in a fleet, the latest first.
func Happenings(facts FleetFacts) []Happening {
	var all []Happening
	evictions := map[string][]placementv1beta1.ClusterResourcePlacementEviction{}
	for _, eviction := range facts.Evictions {
		evictions[eviction.Spec.PlacementName] = append(evictions[eviction.Spec.PlacementName], *eviction)
	}
	records := recordsOf(facts.Records)
	for _, p := range facts.Placements {
		of := HistoryFacts{
			Placement: p, Resources: hub.SnapshotsTold(p.Ref, p.Status.ResourceSnapshots), Bindings: facts.Bindings[p.Ref], Runs: facts.Runs[p.Ref],
			States: map[hub.Ref]updaterun.State{}, Records: records.takeRecordsOf(p.Ref),
		}
		if p.Namespace == "" {
			of.Evictions = evictions[p.Name]
		}
		for _, run := range of.Runs {
			of.States[run.Ref] = stateOf(run, facts.States)
			of.Approvals = append(of.Approvals, facts.Approvals[run.Ref]...)
			all = append(all, failureHappenings(run, of.States[run.Ref])...)
		}
		for _, entry := range History(of) {
			all = append(all, happeningOf(p.Ref, entry, of.States))
		}
	}
	for _, member := range facts.Members {
		all = append(all, memberHappenings(member)...)
	}
	for _, hold := range facts.Holds {
		all = append(all, holdHappenings(hold, facts.Now)...)
	}
	for i := range facts.Exemptions {
		all = append(all, exemptionHappenings(&facts.Exemptions[i], facts.Now)...)
	}
	all = records.addLeft(all)
	all = slices.DeleteFunc(all, func(h Happening) bool { return h.At.IsZero() || h.At.After(facts.Now) })
	slices.SortStableFunc(all, func(a, b Happening) int { return b.At.Compare(a.At) })
	return all
}

// happeningOf returns an entry of the history of a placement, some of whose runs are there.
func happeningOf(placement hub.Ref, entry Entry, runs map[hub.Ref]updaterun.State) Happening {
	h := Happening{Entry: entry, Of: placement, Path: placement.Path(), Bad: entry.bad}
	if entry.What == aboutRun || entry.What == aboutRehearsal {
		run := hub.Ref{Kind: hub.KindRun, Namespace: placement.Namespace, Name: entry.Name}
		h.Path = run.Path()
		if _, there := runs[run]; entry.Recorded && !there {
			h.Path = ""
		}
		h.Bad = h.Bad || strings.HasPrefix(entry.Text, strings.ToLower(string(updaterun.PhaseFailed)))
	}
	return h
}

// maxBreakdowns is how many failed clusters of a run are reported by name: the others are counted.
const maxBreakdowns = 20

// failureHappenings returns which clusters of a run have failed, and what has become of a run that is not over and does not go on by itself.
func failureHappenings(run hub.Run, view updaterun.State) []Happening {
	told := Happening{Entry: Entry{What: aboutRun, Name: run.Name}, Of: run.Placement(), Bad: true, Path: run.Path()}
	var all []Happening
	more := 0
	var last time.Time
	for _, stage := range view.Stages {
		for i := range stage.Clusters {
			cluster := &stage.Clusters[i]
			if cluster.Phase != updaterun.PhaseFailed {
				continue
			}
			if len(all) == maxBreakdowns {
				more++
				if cluster.Ended.After(last) {
					last = cluster.Ended
				}
				continue
			}
			told.At = cluster.Ended
			told.Text = fmt.Sprintf("%s failed in stage %s", cluster.Name, stage.Title()) + withPrefix(": ", cluster.Why)
			all = append(all, told)
		}
	}
	if more > 0 {
		told.At = last
		told.Text = fmt.Sprintf("and %s failed", tree.Plural(more, "more cluster"))
		all = append(all, told)
	}
	if view.Phase == updaterun.PhaseStuck {
		told.At = view.Since
		told.Text = "stuck" + withPrefix(": ", view.Why)
		all = append(all, told)
	}
	return all
}

// again is how long after it has joined a cluster that becomes healthy has been unwell before.
const again = 5 * time.Minute

// memberHappenings returns when a cluster was taken in, joined, and left, and how it is since when.
func memberHappenings(member *clusterv1beta1.MemberCluster) []Happening {
	ref := hub.Ref{Kind: hub.KindMember, Name: member.Name}
	var all []Happening
	add := func(at metav1.Time, bad bool, text, comment string) {
		all = append(all, Happening{Entry: Entry{At: at.Time, What: aboutMember, Name: member.Name, Text: text, Comment: comment}, Of: ref, Bad: bad, Path: ref.Path()})
	}
	add(member.CreationTimestamp, false, "taken into the fleet", "")
	joined := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeJoined)
	if joined != nil && joined.Status == metav1.ConditionTrue {
		add(joined.LastTransitionTime, false, "joined", "")
	}
	if said := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy); said != nil {
		switch {
		case said.Status == metav1.ConditionFalse:
			add(said.LastTransitionTime, true, "unhealthy"+withPrefix(": ", said.Message), "")
		case said.Status != metav1.ConditionTrue:
			add(said.LastTransitionTime, true, "not known to be healthy"+withPrefix(": ", said.Message), "")
		case joined != nil && said.LastTransitionTime.Sub(joined.LastTransitionTime.Time) > again:
			add(said.LastTransitionTime, false, "healthy again", "")
		}
	}
	if at := member.DeletionTimestamp; !at.IsZero() {
		add(*at, false, "leaves the fleet", reasonOf(member))
	}
	return all
}

// holdHappenings returns since when a hold stops the line, and when it has ended by itself.
func holdHappenings(hold *fleetflowv1alpha1.RolloutHold, now time.Time) []Happening {
	told := Happening{Entry: Entry{At: hold.CreationTimestamp.Time, What: aboutHold, Name: hold.Name, By: hold.Annotations[placementv1beta1.CreatorAnnotation],
		Text: "stops the line for " + HoldCover(&hold.Spec), Comment: hold.Spec.Message}, Path: "/holds"}
	all := []Happening{told}
	if ends := hold.Spec.ExpirationTime; ends != nil && !now.Before(ends.Time) {
		told.At = ends.Time
		told.By = ""
		told.Comment = ""
		told.Text = "has expired"
		all = append(all, told)
	}
	return all
}

// exemptionHappenings returns since when an exemption lets something go, and when it has ended.
func exemptionHappenings(e *fleetflowv1alpha1.RolloutExemption, now time.Time) []Happening {
	row := ExemptionOf(e, now)
	told := Happening{Entry: Entry{At: e.CreationTimestamp.Time, What: aboutExemption, Name: e.Name, By: row.By,
		Text: fmt.Sprintf("lets %s go despite %s", row.Target, row.From), Comment: cmp.Or(row.Message, row.Ticket)}, Path: "/holds"}
	all := []Happening{told}
	if !now.Before(row.Expires) {
		told.At = row.Expires
		told.By = ""
		told.Comment = ""
		told.Text = "has expired"
		all = append(all, told)
	}
	return all
}

// Choice is what of a history a user wants to see.
type Choice struct {
	Text, What, By string
	From, Until    time.Time
}

// Of returns what is chosen of happenings.
func (c Choice) Of(all []Happening) []Happening {
	text := strings.ToLower(c.Text)
	has := func(words string) bool { return strings.Contains(strings.ToLower(words), text) }
	var chosen []Happening
	for _, h := range all {
		switch {
		case h.At.Before(c.From), h.At.After(c.Until), c.What != "" && c.What != h.What, c.By != "" && c.By != h.By:
		case text == "", has(h.Of.String()), has(h.Name), has(h.Text), has(h.By), has(h.Comment):
			chosen = append(chosen, h)
		}
	}
	return chosen
}

// Period is a stretch of time that a page is about.
type Period struct {
	// Span is how long it is, one of Spans.
	Span        string
	From, Until time.Time
	// Now says that it lasts until now.
	Now bool

	query url.Values
}

// Spans are how long a period can be, and spans is each in words for programs.
var (
	Spans = []string{"1h", "6h", "24h", "7d", "30d"}
	spans = map[string]time.Duration{"1h": time.Hour, "6h": 6 * time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}
)

// PeriodOf returns the period that a query asks for: the last day without one.
func PeriodOf(query url.Values, now time.Time) Period {
	p := Period{Span: query.Get("span"), Until: now, Now: true, query: query}
	if spans[p.Span] == 0 {
		p.Span = "24h"
	}
	if until, err := time.Parse(time.RFC3339, query.Get("until")); err == nil && until.Before(now) {
		p.Until = until.UTC()
		p.Now = false
	}
	// A whole minute: a page of a period that lasts until now is not another one each second.
	p.From = p.Until.Add(-spans[p.Span]).Truncate(time.Minute)
	return p
}

// Before returns where the period before it is shown, and After that after it; empty if there is none yet.
func (p Period) Before() string { return p.linkUntil(p.From) }

// After returns where the period after it is shown; empty if there is none yet.
func (p Period) After() string {
	if p.Now {
		return ""
	}
	return p.linkUntil(p.Until.Add(spans[p.Span]))
}

func (p Period) linkUntil(at time.Time) string {
	query := url.Values{}
	for name, values := range p.query {
		if name != "page" {
			query[name] = values
		}
	}
	query.Set("span", p.Span)
	query.Set("until", at.UTC().Format(time.RFC3339))
	return "?" + query.Encode()
}

// HourBefore returns where a dashboard shows what has happened in the hour before an instant, and in that second.
func HourBefore(at time.Time) string {
	return "/history?" + url.Values{"span": {Spans[0]}, "until": {at.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)}}.Encode()
}

// BeforeItBroke returns where a dashboard shows what has happened in the hour before a run failed or got stuck; empty for another.
func BeforeItBroke(run updaterun.State) string {
	if run.Since.IsZero() || run.Phase != updaterun.PhaseFailed && run.Phase != updaterun.PhaseStuck {
		return ""
	}
	return HourBefore(run.Since)
}

// HappeningColumns are those of what has happened in a fleet.
var HappeningColumns = []Column[Happening]{
	{Page: "When", File: "at", Text: func(h Happening) string { return h.At.UTC().Format(time.RFC3339) }, Cell: func(h Happening) Cell { return Cell{At: &h.At} }},
	{Page: "About", File: "about", Text: func(h Happening) string { return h.aboutText() }, Cell: func(h Happening) Cell {
		if h.Of.Kind == "" {
			return Cell{Text: h.aboutText()}
		}
		return linkTo(h.Of)
	}},
	{Page: "What", File: "what", Text: func(h Happening) string { return h.What }},
	{Page: "Name", File: "name", Text: func(h Happening) string { return h.Name }, Cell: func(h Happening) Cell { return Cell{Text: h.Name, Path: h.Path} }},
	{Page: "Happened", File: "happened", Text: func(h Happening) string { return h.Text }, Cell: func(h Happening) Cell {
		if h.Bad {
			return Cell{Bad: h.Text}
		}
		return Cell{Text: h.Text}
	}, Compare: func(a, b Happening) int { return CompareNatural(a.Text, b.Text) }},
	{Page: "By", Cell: func(h Happening) Cell { return Cell{Text: h.Sender(), Comment: h.Comment} }},
	{File: "by", Text: func(h Happening) string { return h.By }},
	{File: "comment", Text: func(h Happening) string { return h.Comment }},
	{Page: "Before it", Cell: func(h Happening) Cell { return Cell{Text: "the hour before", Path: HourBefore(h.At)} },
		Compare: func(a, b Happening) int { return a.At.Compare(b.At) }},
}

// Digest returns a short name for a text that elements of a page can have.
func Digest(text string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // it never fails
	return strconv.FormatUint(sum.Sum64(), 36)
}

// IDsOf names happenings, the latest first, so that each keeps its name when later ones come, or when the number in its text changes.
func IDsOf(rows []Happening) []string {
	ids := make([]string, len(rows))
	seen := map[string]int{}
	for i, h := range slices.Backward(rows) {
		ids[i] = "at-" + Digest(fmt.Sprintln(h.At.Unix(), h.Of, h.What, h.Name))
		seen[ids[i]]++
		if number := seen[ids[i]]; number > 1 {
			ids[i] += "-" + strconv.Itoa(number)
		}
	}
	return ids
}

func (h Happening) aboutText() string {
	if h.Of.Kind == "" {
		return "the fleet"
	}
	return h.Of.String()
}
