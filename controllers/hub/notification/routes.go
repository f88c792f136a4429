package notification

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

// RouteKind is what deliveries of messages are called in the status of a record.
const RouteKind = fleetflowv1alpha1.NotificationRuleKind

// maxBatch is how many records are told at a time: those of more runs than a channel takes are in one message anyhow.
const maxBatch = 10_000

// wanted is a way from a rule to a channel that there is to be.
type wanted struct {
	key     delivery.Key
	rule    *Rule
	channel string
	// before are the rules that tell what they ask for in the channel instead: nothing is told twice there.
	before []*Rule
}

// wantedRoutes returns the ways from rules to channels, by the names of the rules. A channel that is not there has none.
func wantedRoutes(rules []*Rule, channels map[string]bool) []wanted {
	rules = slices.SortedFunc(slices.Values(rules), func(a, b *Rule) int { return cmp.Compare(a.Name, b.Name) })
	var all []wanted
	named := map[string][]*Rule{}
	for _, rule := range rules {
		for _, channel := range rule.ChannelNames() {
			if !channels[channel] {
				continue
			}
			all = append(all, wanted{
				key: keyOf(rule.Name, channel), rule: rule, channel: channel, before: slices.Clone(named[channel]),
			})
			named[channel] = append(named[channel], rule)
		}
	}
	return all
}

// keyOf returns the key of the way from a rule to a channel.
func keyOf(rule, channel string) delivery.Key {
	return delivery.Key{Kind: RouteKind, Name: rule + "/" + channel}
}

// channelOf returns the channel of a key.
func channelOf(key delivery.Key) string {
	_, channel, _ := strings.Cut(key.Name, "/")
	return channel
}

// version tells the way from others by what it depends on, of the channel its generation and its Secrets.
func (w *wanted) version(channel string) string {
	versions := []string{channel, string(w.rule.UID), strconv.FormatInt(w.rule.Generation, 10)}
	for _, rule := range w.before {
		versions = append(versions, string(rule.UID), strconv.FormatInt(rule.Generation, 10))
	}
	return strings.Join(versions, " ")
}

// tells reports whether a record is told by the way; the labels are those of its placement, as GateLabels has them. One that the channel has by another rule is not told there again.
func (w *wanted) tells(ctx context.Context, record *fleetflowv1alpha1.AuditRecord, of map[string]string, problem func(rule *Rule, text string)) bool {
	for i := range record.Status.Deliveries {
		had := delivery.Key{Kind: record.Status.Deliveries[i].Kind, Name: record.Status.Deliveries[i].Name}
		if had.Kind == RouteKind && had != w.key && channelOf(had) == w.channel && record.Status.Deliveries[i].Error == "" {
			return false
		}
	}
	for _, rule := range w.before {
		if told, _ := rule.at(record).tellsIn(ctx, w.channel, record, of); told {
			return false
		}
	}
	told, text := w.rule.at(record).tellsIn(ctx, w.channel, record, of)
	if text != "" {
		problem(w.rule, text)
	}
	return told
}

// destination tells records by one rule in one channel.
type destination struct {
	rule    *Rule
	channel func(ctx context.Context) (*fleetflowv1alpha1.NotificationChannel, error)
	send    func(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel, message *Message) error
	problem func(rule *Rule, text string)
	// told has, by name, the records of a batch of which the channel has had a part: what is sent again is the rest.
	told *toldRecords
}

// toldRecords are records that were told.
type toldRecords struct {
	mu    sync.Mutex
	names map[string]bool
}

// Deliver tells records in the channel.
func (d *destination) Deliver(ctx context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	channel, err := d.channel(ctx)
	if err != nil {
		return err
	}
	hasSent := false
	for _, message := range Messages(channel, d.rule, d.told.without(records)) {
		if message.Problem != "" {
			d.problem(d.rule, message.Problem)
		}
		if hasSent && isShort(ctx) {
			return errMore()
		}
		if err := d.send(ctx, channel, &message); err != nil {
			if hasSent && ctx.Err() != nil {
				return errMore()
			}
			return err
		}
		hasSent = true
		d.told.add(message.Records)
	}
	d.told.forget(records)
	return nil
}

// reserve is how much time a message is to have: one that is broken off may have arrived, and is sent again.
const reserve = 3 * time.Second

// isShort reports whether a context has less than the reserve left.
func isShort(ctx context.Context) bool {
	ends, has := ctx.Deadline()
	return has && time.Until(ends) < reserve
}

// errMore says that the rest is sent soon: the channel has taken what there was time for.
func errMore() error {
	return &delivery.RetryError{Why: "more messages are due than the channel takes at a time", After: time.Second}
}

// without returns the records that were not told.
func (t *toldRecords) without(records []fleetflowv1alpha1.AuditRecord) []*fleetflowv1alpha1.AuditRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rest []*fleetflowv1alpha1.AuditRecord
	for i := range records {
		if !t.names[records[i].Name] {
			rest = append(rest, &records[i])
		}
	}
	return rest
}

func (t *toldRecords) add(records []*fleetflowv1alpha1.AuditRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, record := range records {
		t.names[record.Name] = true
	}
}

func (t *toldRecords) forget(records []fleetflowv1alpha1.AuditRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range records {
		delete(t.names, records[i].Name)
	}
}
