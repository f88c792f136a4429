package crds

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfRolloutWindows(t *testing.T) {
	const monday = `weekly: [{days: [Mon], start: "22:00", end: "06:00"}]`
	k := loadKind(t, "RolloutWindow")
	for name, tc := range map[string]struct{ spec, refusal string }{
		"a night of the whole fleet":          {spec: `{type: Allow, scope: Fleet, timeZone: Europe/Berlin, ` + monday + `}`},
		"UTC is a time zone":                  {spec: `{type: Deny, scope: Fleet, timeZone: UTC, ` + monday + `}`},
		"all of it":                           {spec: `{type: Allow, scope: Cluster, clusterSelector: {matchLabels: {region: eu}}, timeZone: America/Argentina/Buenos_Aires, ` + monday + `, monthly: [{week: Second, day: Tue, offsetDays: 1, start: "20:00", end: "24:00"}], dates: [{start: "2026-12-18T00:00", end: "2027-01-05T00:00"}], cron: [{expression: "0 22 * * 1-5", duration: 8h}], except: ["2026-12-24"], lastStartBefore: 30m, starts: [Updates, FirstPlacements, Removals, Evictions], rollbacks: Gated, message: CAB-17}`},
		"scope Placement":                     {spec: `{type: Allow, scope: Placement, placementSelector: {}, timeZone: UTC, ` + monday + `}`},
		"scope Stage":                         {spec: `{type: Allow, scope: Stage, stages: [prod], timeZone: UTC, ` + monday + `}`},
		"scope Stage of some placements":      {spec: `{type: Allow, scope: Stage, stages: [prod], placementSelector: {matchLabels: {team: a}}, timeZone: UTC, ` + monday + `}`},
		"other types":                         {spec: `{type: Block, scope: Fleet, timeZone: UTC, ` + monday + `}`, refusal: `supported values: "Allow", "Deny"`},
		"other scopes":                        {spec: `{type: Allow, scope: World, timeZone: UTC, ` + monday + `}`, refusal: `supported values: "Fleet", "Placement", "Stage", "Cluster"`},
		"no type":                             {spec: `{scope: Fleet, timeZone: UTC, ` + monday + `}`, refusal: "spec.type: Required value"},
		"no time zone":                        {spec: `{type: Allow, scope: Fleet, ` + monday + `}`, refusal: "spec.timeZone: Required value"},
		"an unknown time zone":                {spec: `{type: Allow, scope: Fleet, timeZone: Europe/Nowhere, ` + monday + `}`, refusal: "timeZone"},
		"a zone that is a place of the host":  {spec: `{type: Allow, scope: Fleet, timeZone: Local, ` + monday + `}`, refusal: "spec.timeZone in body should match"},
		"an abbreviation":                     {spec: `{type: Allow, scope: Fleet, timeZone: CET, ` + monday + `}`, refusal: "spec.timeZone in body should match"},
		"an offset":                           {spec: `{type: Allow, scope: Fleet, timeZone: "+01:00", ` + monday + `}`, refusal: "spec.timeZone in body should match"},
		"no entry":                            {spec: `{type: Allow, scope: Fleet, timeZone: UTC}`, refusal: "at least one entry in weekly, monthly, dates or cron"},
		"scope Cluster without a selector":    {spec: `{type: Allow, scope: Cluster, timeZone: UTC, ` + monday + `}`, refusal: "clusterSelector belongs to scope Cluster, which needs one"},
		"a selector that does not count":      {spec: `{type: Allow, scope: Fleet, clusterSelector: {}, timeZone: UTC, ` + monday + `}`, refusal: "clusterSelector belongs to scope Cluster"},
		"scope Placement without a selector":  {spec: `{type: Allow, scope: Placement, timeZone: UTC, ` + monday + `}`, refusal: "placementSelector and namespaceSelector belong to the scopes Placement"},
		"placements of the fleet":             {spec: `{type: Allow, scope: Fleet, placementSelector: {}, timeZone: UTC, ` + monday + `}`, refusal: "placementSelector and namespaceSelector belong to the scopes Placement"},
		"scope Stage, for those that name it": {spec: `{type: Allow, scope: Stage, timeZone: UTC, ` + monday + `}`},
		"placements, and no stages":           {spec: `{type: Allow, scope: Stage, placementSelector: {}, timeZone: UTC, ` + monday + `}`, refusal: "counts for the stages of strategies that name it in windows: add stages, or remove placementSelector and namespaceSelector"},
		"placements by their Namespaces":      {spec: `{type: Allow, scope: Placement, namespaceSelector: {matchLabels: {team: a}}, timeZone: UTC, ` + monday + `}`},
		"stages of placements by Namespace":   {spec: `{type: Allow, scope: Stage, stages: [prod], namespaceSelector: {matchLabels: {team: a}}, timeZone: UTC, ` + monday + `}`},
		"Namespaces of the fleet":             {spec: `{type: Allow, scope: Fleet, namespaceSelector: {}, timeZone: UTC, ` + monday + `}`, refusal: "placementSelector and namespaceSelector belong"},
		"Namespaces, and no stages":           {spec: `{type: Allow, scope: Stage, namespaceSelector: {}, timeZone: UTC, ` + monday + `}`, refusal: "add stages, or remove placementSelector and namespaceSelector"},
		"stages of the fleet":                 {spec: `{type: Allow, scope: Fleet, stages: [prod], timeZone: UTC, ` + monday + `}`, refusal: "stages belongs to scope Stage"},
		"an operator that there is not":       {spec: `{type: Allow, scope: Cluster, clusterSelector: {matchExpressions: [{key: a, operator: In}]}, timeZone: UTC, ` + monday + `}`, refusal: "an operator of matchExpressions is In or NotIn"},
		"start and end are one":               {spec: `{type: Allow, scope: Fleet, timeZone: UTC, weekly: [{days: [Mon], start: "22:00", end: "22:00"}]}`, refusal: "a whole day is 00:00 to 24:00"},
		"monthly start and end are one":       {spec: `{type: Allow, scope: Fleet, timeZone: UTC, monthly: [{week: Last, day: Mon, start: "22:00", end: "22:00"}]}`, refusal: "a whole day is 00:00 to 24:00"},
		"a start at the end of the day":       {spec: `{type: Allow, scope: Fleet, timeZone: UTC, weekly: [{days: [Mon], start: "24:00", end: "02:00"}]}`, refusal: "start in body should match"},
		"an hour that there is not":           {spec: `{type: Allow, scope: Fleet, timeZone: UTC, weekly: [{days: [Mon], start: "22:00", end: "25:00"}]}`, refusal: "end in body should match"},
		"days in full":                        {spec: `{type: Allow, scope: Fleet, timeZone: UTC, weekly: [{days: [Monday], start: "22:00", end: "23:00"}]}`, refusal: `supported values: "Mon"`},
		"no days":                             {spec: `{type: Allow, scope: Fleet, timeZone: UTC, weekly: [{start: "22:00", end: "23:00"}]}`, refusal: "days: Required value"},
		"a fifth week":                        {spec: `{type: Allow, scope: Fleet, timeZone: UTC, monthly: [{week: Fifth, day: Mon, start: "22:00", end: "23:00"}]}`, refusal: `supported values: "First"`},
		"a date that there is not":            {spec: `{type: Allow, scope: Fleet, timeZone: UTC, dates: [{start: "2026-02-30T00:00", end: "2026-03-01T00:00"}]}`, refusal: "start"},
		"a date that ends before it starts":   {spec: `{type: Allow, scope: Fleet, timeZone: UTC, dates: [{start: "2026-03-02T00:00", end: "2026-03-01T00:00"}]}`, refusal: "start before end"},
		"a date with a zone":                  {spec: `{type: Allow, scope: Fleet, timeZone: UTC, dates: [{start: "2026-03-02T00:00Z", end: "2026-03-03T00:00Z"}]}`, refusal: "start"},
		"an exception that is no date":        {spec: `{type: Allow, scope: Fleet, timeZone: UTC, ` + monday + `, except: ["2026-02-30"]}`, refusal: "except"},
		"cron with a zone":                    {spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "TZ=UTC 0 22 * * *", duration: 1h}]}`, refusal: "time zones (TZ=, CRON_TZ=) belong in timeZone"},
		"cron with a zone, the other way":     {spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "CRON_TZ=UTC 0 22 * * *", duration: 1h}]}`, refusal: "time zones (TZ=, CRON_TZ=) belong in timeZone"},
		"cron every hour":                     {spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "@every 1h", duration: 1h}]}`, refusal: "@every, @reboot and the like are not taken"},
		"cron at start":                       {spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "@reboot", duration: 1h}]}`, refusal: "@every, @reboot and the like are not taken"},
		"cron with seconds":                   {spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "0 0 22 * * *", duration: 1h}]}`, refusal: "expression needs the five fields"},
		"cron for more than a week":           {spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "0 22 * * *", duration: 169h}]}`, refusal: "duration must be 1m to 168h"},
		"cron without an end":                 {spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "0 22 * * *"}]}`, refusal: "duration: Required value"},
		"a last start that is no time":        {spec: `{type: Allow, scope: Fleet, timeZone: UTC, ` + monday + `, lastStartBefore: 0s}`, refusal: "lastStartBefore must be 1m to 168h"},
		"a last start of a Deny":              {spec: `{type: Deny, scope: Fleet, timeZone: UTC, ` + monday + `, lastStartBefore: 30m}`, refusal: "lastStartBefore belongs to type Allow"},
		"other starts":                        {spec: `{type: Deny, scope: Fleet, timeZone: UTC, ` + monday + `, starts: [Everything]}`, refusal: "supported values"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: RolloutWindow\nmetadata: {name: w}\nspec: "+tc.spec+"\n", "")
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
	t.Run("the scope does not change", func(t *testing.T) {
		const head = "apiVersion: fleetflow.io/v1alpha1\nkind: RolloutWindow\nmetadata: {name: w}\nspec: "
		_, errs := k.admit(t, head+`{type: Deny, scope: Fleet, timeZone: UTC, `+monday+"}\n", head+`{type: Deny, scope: Cluster, clusterSelector: {}, timeZone: UTC, `+monday+"}\n")
		assert.Contains(t, texts(errs), "scope does not change")
	})
}
