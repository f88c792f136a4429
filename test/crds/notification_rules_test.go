package crds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRulesOfNotificationChannels(t *testing.T) {
	k := loadKind(t, "NotificationChannel")
	for name, tc := range map[string]struct{ spec, refusal string }{
		"Slack by a token":                       {`{type: Slack, slack: {channel: "#ops", tokenSecret: {name: slack, key: token}}}`, ""},
		"Slack by a webhook":                     {`{type: Slack, slack: {urlSecret: {name: slack, key: url}}}`, ""},
		"Teams":                                  {`{type: Teams, teams: {urlSecret: {name: teams, key: url}}, dashboardURL: "https://fleet.example.com"}`, ""},
		"mail":                                   {`{type: Email, email: {server: "smtp.example.com:587", from: fleet@example.com, to: [ops@example.com]}}`, ""},
		"a webhook":                              {`{type: Webhook, webhook: {url: "https://hooks.example.com/fleet", signingSecret: {name: hook, key: key}}}`, ""},
		"a type that there is not":               {`{type: Pager}`, `spec.type: Unsupported value: "Pager"`},
		"without what its type needs":            {`{type: Slack}`, "spec.slack: Invalid value"},
		"with what another type needs":           {`{type: Teams, teams: {urlSecret: {name: a, key: b}}, webhook: {url: "https://h", signingSecret: {name: a, key: b}}}`, "webhook belongs to type Webhook, which needs it"},
		"Slack by both":                          {`{type: Slack, slack: {channel: "#ops", tokenSecret: {name: a, key: b}, urlSecret: {name: a, key: b}}}`, "set either tokenSecret or urlSecret"},
		"Slack by neither":                       {`{type: Slack, slack: {}}`, "spec.slack.tokenSecret: Invalid value"},
		"an app that does not know where":        {`{type: Slack, slack: {tokenSecret: {name: a, key: b}}}`, "spec.slack.channel: Invalid value"},
		"a webhook of Slack to another channel":  {`{type: Slack, slack: {channel: "#ops", urlSecret: {name: a, key: b}}}`, "spec.slack.channel: Invalid value"},
		"a url in the spec":                      {`{type: Slack, slack: {url: "https://hooks.slack.com/services/T0/B0/secret"}}`, "set either tokenSecret or urlSecret"},
		"a channel with markup":                  {`{type: Slack, slack: {channel: "<!here>", tokenSecret: {name: a, key: b}}}`, "spec.slack.channel in body should match"},
		"a webhook that others can read":         {`{type: Webhook, webhook: {url: "http://h", signingSecret: {name: a, key: b}}}`, "spec.webhook.url: Invalid value"},
		"that is accepted":                       {`{type: Webhook, webhook: {url: "http://h", allowPlainText: true, signingSecret: {name: a, key: b}}}`, ""},
		"a url with a password":                  {`{type: Webhook, webhook: {url: "https://u:p@h", signingSecret: {name: a, key: b}}}`, "without a query, a fragment and credentials"},
		"a url with a query":                     {`{type: Webhook, webhook: {url: "https://h/?token=1", signingSecret: {name: a, key: b}}}`, "without a query, a fragment and credentials"},
		"a webhook that is not signed":           {`{type: Webhook, webhook: {url: "https://h"}}`, "spec.webhook.signingSecret: Required value"},
		"mail without a port":                    {`{type: Email, email: {server: smtp.example.com, from: a@b.example, to: [c@d.example]}}`, "spec.email.server in body should match"},
		"mail to nobody":                         {`{type: Email, email: {server: "s:25", from: a@b.example, to: []}}`, "spec.email.to"},
		"mail with another header in an address": {`{type: Email, email: {server: "s:25", from: "a@b.example\r\nBcc: x@y.example", to: [c@d.example]}}`, "spec.email.from in body should match"},
		"mail with a password alone":             {`{type: Email, email: {server: "s:25", from: a@b.example, to: [c@d.example], passwordSecret: {name: a, key: b}}}`, "spec.email.passwordSecret: Invalid value"},
		"a dashboard with a query":               {`{type: Teams, teams: {urlSecret: {name: a, key: b}}, dashboardURL: "https://f/?a=b"}`, "spec.dashboardURL: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: NotificationChannel\nmetadata: {name: ops}\nspec: "+tc.spec+"\n", "")
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
	_, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: NotificationChannel\nmetadata: {name: "+strings.Repeat("a", 64)+"}\nspec: {type: Teams, teams: {urlSecret: {name: a, key: b}}}\n", "")
	assert.Contains(t, texts(errs), "choose a shorter name")
}

func TestRulesOfNotificationRules(t *testing.T) {
	k := loadKind(t, "NotificationRule")
	for name, tc := range map[string]struct{ spec, refusal string }{
		"types and a channel":                  {`{types: [run.failed, "approval.*"], channelRefs: [{name: ops}]}`, ""},
		"a group":                              {`{types: [run.failed], channelRefs: [{name: ops}], group: {by: Record, window: 0s, maxMessages: 1}}`, ""},
		"no type":                              {`{types: [], channelRefs: [{name: ops}]}`, "spec.types"},
		"a type of what there are no facts of": {`{types: [weather.*], channelRefs: [{name: ops}]}`, "spec.types[0] in body should match"},
		"all":                                  {`{types: ["*"], channelRefs: [{name: ops}]}`, "spec.types[0] in body should match"},
		"no channel":                           {`{types: [run.failed], channelRefs: []}`, "spec.channelRefs"},
		"a channel twice":                      {`{types: [run.failed], channelRefs: [{name: ops}, {name: ops}]}`, "Duplicate value"},
		"a long window":                        {`{types: [run.failed], channelRefs: [{name: ops}], group: {window: 2h}}`, "window must be 0s to 10m"},
		"too many messages":                    {`{types: [run.failed], channelRefs: [{name: ops}], group: {maxMessages: 101}}`, "spec.group.maxMessages"},
		"reminders":                            {`{types: [approval.requested], channelRefs: [{name: ops}], remind: {every: 8h, atMost: 20}}`, ""},
		"reminders of nothing that waits":      {`{types: [run.failed], channelRefs: [{name: ops}], remind: {}}`, "spec.remind: Invalid value"},
		"reminders every second":               {`{types: ["approval.*"], channelRefs: [{name: ops}], remind: {every: 1s}}`, "every must be 1m to 168h"},
		"reminders without end":                {`{types: ["approval.*"], channelRefs: [{name: ops}], remind: {atMost: 21}}`, "spec.remind.atMost"},
		"a long template":                      {`{types: [run.failed], channelRefs: [{name: ops}], template: "` + strings.Repeat("a", 4097) + `"}`, "may not be more than 4096"},
		"a selector without values":            {`{types: [run.failed], channelRefs: [{name: ops}], placementSelector: {matchExpressions: [{key: a, operator: In}]}}`, "spec.placementSelector.matchExpressions: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: NotificationRule\nmetadata: {name: people}\nspec: "+tc.spec+"\n", "")
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
	stored, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: NotificationRule\nmetadata: {name: people}\nspec: {types: [run.failed], channelRefs: [{name: ops}]}\n", "")
	require.Empty(t, texts(errs))
	assert.Equal(t, map[string]any{"by": "Run", "window": "30s", "maxMessages": int64(20)}, stored["spec"].(map[string]any)["group"])
	assert.NotContains(t, stored["spec"], "remind", "who does not ask for it is not reminded")
	stored, errs = k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: NotificationRule\nmetadata: {name: people}\nspec: {types: [approval.requested], channelRefs: [{name: ops}], remind: {}}\n", "")
	require.Empty(t, texts(errs))
	assert.Equal(t, map[string]any{"every": "4h", "atMost": int64(6)}, stored["spec"].(map[string]any)["remind"])
}
