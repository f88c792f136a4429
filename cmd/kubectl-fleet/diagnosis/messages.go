package diagnosis

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

// readTold reads what records and messages go to.
func (f *Facts) readTold(ctx context.Context, c client.Client) (err error) {
	f.Told, err = fleetview.ReadTold(ctx, c)
	return err
}

// checkMessages names the channels, rules and sinks that fail. A fleet that has none is as good.
func (c *checker) checkMessages() {
	failing := 0
	unknown := 0
	for _, of := range c.Told {
		switch of.State {
		case fleetview.ToldFails:
			failing++
			c.addFinding(partMessages, Warning, of.Reason, fmt.Sprintf("%s %s: %s", of.Kind, of.Name, of.Message), mendingOf(of))
		case fleetview.ToldUnknown:
			unknown++
		}
	}
	switch {
	case c.ToldHidden != "":
		c.addFinding(partMessages, Unknown, "NotReadable", fmt.Sprintf("whether messages and records arrive is not known, as %s channels, rules and sinks", c.ToldHidden), "")
	case len(c.Told) > 0 && failing == 0 && unknown > 0:
		c.addGood(partMessages, "none of %d channels, rules and sinks fails; of %d of them nothing is known yet", len(c.Told), unknown)
	case len(c.Told) > 0 && failing == 0:
		c.addGood(partMessages, "none of %d channels, rules and sinks fails", len(c.Told))
	}
}

// mendingOf returns what to do about what fails.
func mendingOf(of fleetview.Told) string {
	switch of.Kind {
	case fleetview.ToldChannel:
		return "once it is corrected: kubectl fleet notify test " + of.Name
	case fleetview.ToldRule:
		return "kubectl edit notificationrule " + of.Name
	}
	return "kubectl fleet records --undelivered says what waits for it"
}
