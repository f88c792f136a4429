package picture

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
)

// Funcs are what templates write times and states with.
func Funcs() template.FuncMap {
	return template.FuncMap{
		"instant": instant, "clock": clockOf, "mark": markOf, "word": Word, "over": isOver,
		"legend": func() []updaterun.Phase { return Legend }, "outcomes": Outcomes, "bars": func() map[string]string { return Bars },
		"ages": func() []string { return Ages }, "sign": func(age string) string { return Signs[age] },
	}
}

// instant returns a time as pages show it; a text that stays true is what is seen without script.
func instant(at time.Time) template.HTML {
	if at.IsZero() {
		return "–"
	}
	at = at.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, at.Format(time.RFC3339), at.Format("2006-01-02 15:04:05 UTC"))) //nolint:gosec // digits only
}

// scales are how times are written at an axis, where there is little room; the names are classes, by which script does the same.
var scales = map[string]string{"clock": "15:04 UTC", "day": "Jan 2 15:04 UTC", "date": "Jan 2 2006"}

// clockOf returns a time as an axis shows it.
func clockOf(scale string, at time.Time) template.HTML {
	at = at.UTC()
	return template.HTML(fmt.Sprintf(`<time class="%s" datetime="%s" title="%s">%s</time>`, scale, at.Format(time.RFC3339), //nolint:gosec // digits and names of scales only
		at.Format("2006-01-02 15:04:05 UTC"), at.Format(scales[scale])))
}

// marks stand for states, beside their word and their colour.
var marks = map[updaterun.Phase]string{
	updaterun.PhaseSucceeded: "✓", updaterun.PhaseSkipped: "–", updaterun.PhaseFailed: "✗", updaterun.PhaseStuck: "!",
	updaterun.PhaseRunning: "▶",
	updaterun.PhaseWaiting: "◷", updaterun.PhaseStopping: "‖", updaterun.PhaseStopped: "‖",
}

func markOf(state any) string {
	if mark := marks[updaterun.Phase(fmt.Sprint(state))]; mark != "" {
		return mark
	}
	return "·"
}

// Word returns a state as pages show it.
func Word(state any) string { return strings.ToLower(fmt.Sprint(state)) }

func isOver(state updaterun.Phase) bool { return state.Over() && state != updaterun.PhaseFailed }
