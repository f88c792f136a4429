package rollout

import (
	"fmt"
	"time"
)

// Text says what a cluster waits for. It is the one renderer: conditions, events, summaries and command lines add what they are about.
func (w Wait) Text() string {
	switch w.Kind {
	case BrakeHook:
		text := "waits for " + w.Why
		if !w.Since.IsZero() {
			text += " since " + w.Since.UTC().Format(time.RFC3339)
		}
		return text + " (hook " + w.Object + ")"
	case BrakeHold, BrakeWindow, BrakeBusy, BrakeBase:
		return w.closureText()
	}
	return w.Why
}

// Title names what keeps a cluster from its turn.
func (w Wait) Title() string {
	switch w.Kind {
	case BrakeHold:
		return "hold " + w.Object
	case BrakeWindow:
		return "window " + w.Object
	case BrakeBusy:
		return "busy cluster " + w.Object
	case BrakeBase:
		return "a retry of cluster " + w.Object
	}
	return w.Object
}

// closureText names what keeps a cluster from its turn, why, and until when if time alone opens it.
func (w Wait) closureText() string {
	text := w.Title()
	if w.Why != "" {
		text += " (" + w.Why + ")"
	}
	switch {
	case w.Until.IsZero():
	case w.Reason == reasonOutsideAllowedWindow:
		text += ": opens " + w.Until.Format(time.RFC3339)
	case w.Reason == reasonWindowClosed:
		text += ": ends " + w.Until.Format(time.RFC3339)
	default:
		text += " until " + w.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// StatusText is what the status of a run says of a cluster that has its turn and waits.
func (w Wait) StatusText() string {
	switch w.Kind {
	case BrakeRefusal:
		return "Cluster update started; its binding cannot be written, which is tried again: " + w.Text()
	case BrakeHook:
		return "Cluster update started; the cluster " + w.Text()
	}
	return "Cluster update waits: " + w.Text()
}

// RefusedText says of how many clusters of a placement the bindings cannot be written, and why of the first; empty if there are none.
func RefusedText(refused []Wait) string {
	switch len(refused) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("The binding of cluster %s cannot be written, which is tried again: %s", refused[0].Cluster, refused[0].Text())
	}
	return fmt.Sprintf("The bindings of %d clusters cannot be written, which is tried again; that of cluster %s: %s", len(refused),
		refused[0].Cluster, refused[0].Text())
}

// EventText is what an event says of a cluster of a stage that has its turn and waits, and EventTextOfMore of further ones.
func (w Wait) EventText(stage string) string {
	switch w.Kind {
	case BrakeRefusal:
		return fmt.Sprintf("The binding of cluster %s in stage %s cannot be written, which is tried again: %s", w.Cluster, stage, w.Text())
	case BrakeHook:
		return fmt.Sprintf("Cluster %s in stage %s %s", w.Cluster, stage, w.Text())
	}
	return fmt.Sprintf("Cluster %s in stage %s waits: %s", w.Cluster, stage, w.Text())
}

// EventTextOfMore says of how many more clusters of a stage an event would say the like.
func (w Wait) EventTextOfMore(more int, stage string) string {
	switch w.Kind {
	case BrakeRefusal:
		return fmt.Sprintf("The bindings of %d more clusters in stage %s cannot be written", more, stage)
	case BrakeHook:
		return fmt.Sprintf("%d more clusters in stage %s wait for the answer to a lifecycle hook", more, stage)
	case BrakeNewCluster:
		return fmt.Sprintf("%d more clusters in stage %s wait for the clusters that replace them", more, stage)
	}
	return fmt.Sprintf("%d more clusters in stage %s wait: the placement suspends them", more, stage)
}

// StuckText says, as an addition to a sentence, that a wait is why a run is stuck; empty if it is not.
func (w Wait) StuckText() string {
	if w.Kind != BrakeRefusal {
		return ""
	}
	return ": its binding cannot be written: " + w.Text()
}
