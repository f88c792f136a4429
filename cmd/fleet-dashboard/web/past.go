package web

import (
	"net/http"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

// pastOrHistory answers with what has happened in the fleet, or leads to the history of the placement that is named.
func (s *Server) pastOrHistory() http.Handler {
	past := s.download(s.page(pastPage), pastFile)
	return s.visited(func(w http.ResponseWriter, v *visit) {
		if v.URL.Query().Get("placement") != "" {
			v.toPlacement(w, "/history")
			return
		}
		past.ServeHTTP(w, v.Request)
	})
}

// past returns what the user wants to see of what has happened in the fleet, with how it is drawn.
func (v *visit) past() ([]fleetview.Happening, fleetview.Choice, fleetview.Period, picture.Past) {
	query := v.URL.Query()
	period := fleetview.PeriodOf(query, v.fleet.At)
	drawn := picture.AxisOf(period.From, period.Until)
	choice := fleetview.Choice{Text: query.Get("q"), What: query.Get("type"), By: query.Get("by"), From: drawn.Start, Until: period.Until}
	all, ran := v.fleet.Past(drawn.Start, period.Until)
	chosen := choice.Of(all)
	return chosen, choice, period, drawn.Draw(chosen, picture.Chosen(ran, choice), period.Until)
}

func pastPage(v *visit) (page, error) {
	chosen, choice, period, drawn := v.past()
	query := v.URL.Query()
	file := func(format string) string {
		query.Set("format", format)
		return "?" + query.Encode()
	}
	l := paginate(v, fleetview.Sort(chosen, fleetview.HappeningColumns, v.order()), historyRows)
	return compose("History", "history", false, piece{"past", "past", struct {
		list[fleetview.Happening]
		Table      sortedTable
		Past       picture.Past
		Choice     fleetview.Choice
		Period     fleetview.Period
		Words      []string
		Spans      []string
		CSV, Lines string
	}{l, sortable("The latest first, from what is watched on the hub", "Nothing has happened in this time, or nothing that matches.", fleetview.HappeningColumns, l),
		drawn, choice, period, fleetview.About, fleetview.Spans, file("csv"), file("jsonl")}})
}

// pastFile returns what has happened in the fleet as a file.
func pastFile(v *visit, format string) (file, error) {
	chosen, _, _, _ := v.past()
	return rowsFile("history", format, fleetview.HappeningColumns, chosen)
}
