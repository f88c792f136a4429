package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/live"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// followFleet shows the fleet until the context ends.
func (o *getOptions) followFleet(ctx context.Context) error {
	reader, err := o.newReader()
	if err != nil {
		return err
	}
	if err := reader.CheckHub(ctx); err != nil {
		return err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	kinds := o.wanted.Kinds
	if o.wanted.Has(hub.KindPlacement) && !o.wanted.Has(hub.KindRun) {
		kinds = append(slices.Clone(kinds), hub.KindRun) // what a placement is at may be up to a run
	}
	feed, err := o.Follow(ctx, c, hub.FleetSources(kinds, reader.Namespace), "reading the fleet")
	if err != nil {
		return err
	}
	show := showFleet(o, func() *fleetview.Fleet { return o.wanted.Sort(feed.Objects()) })
	loop := &live.Loop{Clock: o.Factory.Clock, Changed: feed.Changed(), Show: show,
		Picture: func() live.Picture { return live.Picture{Note: feed.Trouble()} }}
	return loop.Run(ctx)
}

// showFleet shows what there is now: as tables on a terminal, as events for programs, else as rows that have changed.
func showFleet(o *getOptions, read func() *fleetview.Fleet) func(live.Picture) error {
	now := o.Factory.Clock.Now
	switch {
	case o.Structured():
		events := &watchEvents{known: map[types.UID]client.Object{}}
		return showWithNotes(&o.Viewing, func(live.Picture) error { return events.printChanges(o, o.wanted.Objects(read())) })
	case cli.IsTerminal(o.Streams.Out):
		screen := &live.Screen{Out: o.Streams.Out, Size: func() (int, int) { return cli.Size(o.Streams.Out) }}
		return func(picture live.Picture) error {
			width, _ := cli.Size(o.Streams.Out)
			lines, err := o.tableLines(base.Narrow(o.makeTables(read(), now()), width, o.Wide()), width, picture.Note)
			if err != nil {
				return err
			}
			return screen.Draw(lines)
		}
	}
	rows := &changedRows{began: now(), before: map[string]string{}}
	return showWithNotes(&o.Viewing, func(live.Picture) error { return rows.printChanges(o, read(), now()) })
}

// showWithNotes shows pictures as another does that has no place for their notes: these are told on the side whenever they change.
func showWithNotes(v *base.Viewing, show func(live.Picture) error) func(live.Picture) error {
	note := ""
	return func(picture live.Picture) error {
		if picture.Note != note {
			note = picture.Note
			cli.Printf(v.Streams.ErrOut, "%s\n", cmp.Or(note, upToDateAgain))
		}
		return show(picture)
	}
}

// upToDateAgain is what takes the place of a note that is no more.
const upToDateAgain = "what is shown is up to date again"

// tableLines are tables as lines of a terminal.
func (o *getOptions) tableLines(tables []base.Table, width int, note string) ([]string, error) {
	text := &bytes.Buffer{}
	if err := o.printTables(text, tables); err != nil {
		return nil, err
	}
	if note != "" {
		cli.Printf(text, "%s\n", note)
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = tree.Cut(lines[i], width, width > 0)
	}
	return lines, nil
}

// changedRows reports rows that have changed.
type changedRows struct {
	// began is when it was first reported: what only the clock changes is no change.
	began  time.Time
	before map[string]string
	widths map[hub.Kind][]int
}

func (r *changedRows) printChanges(o *getOptions, read *fleetview.Fleet, now time.Time) error {
	tables := o.makeTables(read, now)
	first := r.widths == nil
	if first {
		r.widths = map[hub.Kind][]int{}
		if err := o.printTables(o.Streams.Out, tables); err != nil {
			return err
		}
		for _, one := range tables {
			r.widths[one.Kind] = one.Widths(o.Wide())
		}
	}
	after := map[string]string{}
	for t, still := range o.makeTables(read, r.began) {
		for i, row := range still.Rows {
			key := string(still.Kind) + "/" + row[0]
			said := strings.Join(withoutHeartbeat(still.Columns, row), "\x00")
			if !first && r.before[key] != said {
				cli.Printf(o.Streams.Out, "%s\n", tables[t].Line(i, r.widths[still.Kind], o.Wide(), len(tables) > 1))
			}
			after[key] = said
		}
	}
	for _, key := range slices.Sorted(goneKeys(r.before, after)) {
		cli.Printf(o.Streams.Out, "%s deleted\n", key)
	}
	r.before = after
	return nil
}

// goneKeys returns the keys of one map that another has not.
func goneKeys(before, after map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range before {
			if _, there := after[key]; !there && !yield(key) {
				return
			}
		}
	}
}

// withoutHeartbeat returns a row without what changes with every heartbeat.
func withoutHeartbeat(columns []cli.Column, row []string) []string {
	row = slices.Clone(row)
	for i, column := range columns {
		if column.Name == fleetview.Heartbeat {
			row[i] = ""
		}
	}
	return row
}

// watchEvents reports objects that come, change and go.
type watchEvents struct{ known map[types.UID]client.Object }

// watchEvent is an event as kubectl get --output-watch-events writes it.
type watchEvent struct {
	Type   string        `json:"type"`
	Object client.Object `json:"object"`
}

func (w *watchEvents) printChanges(o *getOptions, objects []client.Object) error {
	now := map[types.UID]client.Object{}
	var errs []error
	encode := cli.LineEncoder(o.Streams.Out)
	say := func(kind string, object client.Object) { errs = append(errs, encode(watchEvent{kind, object})) }
	for _, object := range objects {
		now[object.GetUID()] = object
		before, known := w.known[object.GetUID()]
		switch {
		case !known:
			say("ADDED", object)
		case before.GetResourceVersion() != object.GetResourceVersion():
			say("MODIFIED", object)
		}
	}
	for uid, object := range w.known {
		if _, there := now[uid]; !there {
			say("DELETED", object)
		}
	}
	w.known = now
	return errors.Join(errs...)
}
