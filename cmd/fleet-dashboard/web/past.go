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

// pastPath is the path of the history of the fleet.
const pastPath = "/history"

// pastQuery is what a history depends on, beside the fleet.
type pastQuery struct {
	choice fleetview.Choice
	span   string
}

// drawnPast is what a user wants to see of what has happened, with how it is drawn.
type drawnPast struct {
	chosen []fleetview.Happening
	picture.Past
}

// past returns what the user wants to see of what has happened in the fleet. Neither must be changed.
func (v *visit) past() (drawnPast, fleetview.Choice, fleetview.Period) {
	query := v.URL.Query()
	period := fleetview.PeriodOf(query, v.fleet.At)
	axis := picture.AxisOf(period.From, period.Until)
	choice := fleetview.Choice{Text: query.Get("q"), What: query.Get("type"), By: query.Get("by"), From: axis.Start, Until: period.Until}
	drawn := v.fleet.Drawn(pastQuery{choice, period.Span}, func() any {
		all, ran := v.fleet.Past(axis.Start, period.Until)
		chosen := choice.Of(all)
		return drawnPast{chosen, axis.Draw(chosen, picture.Chosen(ran, choice), period.Until)}
	})
	return drawn.(drawnPast), choice, period //nolint:forcetypeassert // what such a query has is that
}

func pastPage(v *visit) (page, error) {
	drawn, choice, period := v.past()
	query := v.URL.Query()
	file := func(format string) string {
		query.Set("format", format)
		return "?" + query.Encode()
	}
	l := paginate(v, fleetview.Sort(drawn.chosen, fleetview.HappeningColumns, v.order()), historyRows)
	t := sortable("The latest first, from what is watched on the hub", "Nothing has happened in this time, or nothing that matches.", fleetview.HappeningColumns, l)
	t.IDs = fleetview.IDsOf(l.Rows)
	return compose("History", "history", period.Now,
		piece{"past", "past", struct {
			Choice fleetview.Choice
			Period fleetview.Period
			Order  fleetview.Order
			Words  []string
			Spans  []string
		}{choice, period, l.Order, fleetview.About, fleetview.Spans}},
		piece{"period", "period", struct {
			Past       picture.Past
			Period     fleetview.Period
			CSV, Lines string
		}{drawn.Past, period, file("csv"), file("jsonl")}},
		piece{"lanes", "lanes", drawn.Past},
		piece{"happened", "happened", struct {
			list[fleetview.Happening]
			Table sortedTable
		}{l, t}})
}

// pastFile returns what has happened in the fleet as a file.
func pastFile(v *visit, format string) (file, error) {
	drawn, _, _ := v.past()
	return rowsFile("history", format, fleetview.HappeningColumns, drawn.chosen)
}
