package placement

import (
	"fmt"
	"strings"
	"time"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// named is how many clusters a summary names.
const named = 3

// describe returns what is being rolled out, to how many clusters, and how far that is.
func (s *state) describe(now time.Time) string {
	if s.selected.Snapshot == "" || s.selected.Invalid {
		return ""
	}
	text := describeRollout(s.selected, s.scheduled)
	switch {
	case s.stand == standQuiet && s.result.Settled:
		return text + describeClosed(s.result)
	case s.stand == standQuiet, s.stand == standRound && s.rolling:
		return text + describeProgress(s.result, s.progress, now)
	}
	return text
}

// describeRollout returns what is being rolled out, and to how many clusters if that is known.
func describeRollout(selected wf.SelectResult, scheduled wf.ScheduleResult) string {
	if scheduled.PolicySnapshot == "" {
		return fmt.Sprintf("Snapshot **%s**, the clusters stay those that were selected before.", selected.Snapshot)
	}
	return fmt.Sprintf("Snapshot **%s**, %d clusters selected by policy %s.", selected.Snapshot, scheduled.Selected, scheduled.PolicySnapshot)
}

// describeProgress returns how far a rollout is, and if it is stuck, on what.
func describeProgress(result wf.AdvanceResult, progress, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n\n| changing next | in flight | waiting for the limits |\n|---|---|---|\n| %d | %d | %d |",
		len(result.Next), result.InFlight, result.Blocked)
	if now.Sub(progress) >= wf.StuckAfter {
		fmt.Fprintf(&out, "\n\n**Stuck** since %s.", progress.UTC().Format(time.RFC3339))
	}
	if result.HeldBack > 0 {
		fmt.Fprintf(&out, "\n\nThe partition or a pause keeps %d cluster(s) as they are.", result.HeldBack)
	}
	if result.Hooked > 0 {
		fmt.Fprintf(&out, "\n\n%d cluster(s) wait for the answer to a lifecycle hook.", result.Hooked)
	}
	out.WriteString(describeClosed(result))
	if refused := describeRefused(result); refused != "" {
		out.WriteString("\n\n" + refused + ".")
	}
	if result.Held != "" {
		fmt.Fprintf(&out, "\n\nThe limits hold it back: %s.", result.Held)
	}
	if len(result.Waiting) > 0 {
		out.WriteString("\n\n| not available | since | step | reason | object |\n|---|---|---|---|---|")
		for _, w := range result.Waiting {
			since := ""
			if !w.Since.IsZero() {
				since = w.Since.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(&out, "\n| %s | %s | %s | %s | %s |", inert(w.Cluster), since, w.Step, inert(w.Reason), inert(w.Object))
		}
	}
	return out.String()
}

// describeClosed returns which clusters wait because they are closed; nothing if none do.
func describeClosed(result wf.AdvanceResult) string {
	if result.Closed == 0 {
		return ""
	}
	return "\n\n**Held**: " + inert(result.ClosedBy) + "."
}

// describeRefused returns how many clusters cannot be written to; nothing if all can.
func describeRefused(result wf.AdvanceResult) string {
	if result.Refused == 0 {
		return ""
	}
	return fmt.Sprintf("The bindings of %d cluster(s) cannot be written, which is tried again; the status of the placement says why",
		result.Refused)
}

// inert returns a text that others have written as Markdown shows it: without images, links, tags or cells of its own.
func inert(text string) string {
	return markup.Replace(text)
}

var markup = strings.NewReplacer("\r", " ", "\n", " ", "|", `\|`, `\`, `\\`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "`", "\\`", "*",
	`\*`, "_", `\_`, "~", `\~`, "&", `\&`,
	"://", `:\//`, "www.", `www\.`, "@", `\@`)

// summarizeRequest returns what an activity is asked to do, to which clusters and why.
func summarizeRequest(r wf.AdvanceRequest) string {
	if r.EvictionsOnly {
		return fmt.Sprintf("decide %d evictions", len(r.Batch))
	}
	if len(r.Batch) == 0 {
		return fmt.Sprintf("plan %s, %d in flight", r.Snapshot, r.InFlight)
	}
	var parts []string
	for _, op := range []struct{ op, words string }{
		{wf.OpUpdate, "update"}, {wf.OpAdd, "first write to"}, {wf.OpAddStable, "first write of the older snapshot to"},
		{wf.OpRemove, "remove from"},
		{wf.OpPrepareUpdate, "prepare the update of"}, {wf.OpPrepareRemove, "prepare the removal from"},
		{wf.OpGiveUpChange, "give up the change of"},
		{wf.OpEvict, "evict from"}, {wf.OpConclude, "refuse to evict from"},
	} {
		var clusters []string
		for _, change := range r.Batch {
			if change.Op == op.op {
				clusters = append(clusters, change.Cluster)
			}
		}
		if len(clusters) > 0 {
			parts = append(parts, op.words+" "+listClusters(clusters))
		}
	}
	return fmt.Sprintf("%s for %s, %d in flight", strings.Join(parts, "; "), r.Snapshot, r.InFlight)
}

// listClusters lists some clusters and counts the rest.
func listClusters(clusters []string) string {
	if len(clusters) <= named {
		return strings.Join(clusters, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(clusters[:named], ", "), len(clusters)-named)
}
