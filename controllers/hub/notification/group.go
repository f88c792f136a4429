package notification

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// maxEntries is of how many records a message tells: of more, the last ones, and how many there are before them.
	maxEntries = 20
	// maxObjects is how many objects a digest names.
	maxObjects = 10
)

// Messages returns the messages by which a rule tells records in a channel: a message for each run, or for each record, as the rule groups them. Where
// these are more than a channel takes at a time, there is one that sums them all up.
func Messages(channel *fleetflowv1alpha1.NotificationChannel, rule *Rule, records []*fleetflowv1alpha1.AuditRecord) []Message {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b *fleetflowv1alpha1.AuditRecord) int {
		return cmp.Or(a.Spec.Time.Compare(b.Spec.Time.Time), cmp.Compare(a.Spec.Sequence, b.Spec.Sequence), strings.Compare(a.Name, b.Name))
	})
	group := rule.EffectiveGroup()
	parts, order := byKey(records, func(record *fleetflowv1alpha1.AuditRecord) string {
		if group.By == fleetflowv1alpha1.GroupByRecord {
			return record.Name
		}
		if isOfMember(record) {
			return string(record.Spec.Type) // an outage is one message, however many members it has
		}
		return subjectOf(record)
	})
	if len(order) > int(group.MaxMessages) {
		return []Message{digestOf(channel, records)}
	}
	messages := make([]Message, 0, len(order))
	for _, key := range order {
		messages = append(messages, messageOf(channel, rule, parts[key]))
	}
	return messages
}

// subjectOf returns which object a record is about.
func subjectOf(record *fleetflowv1alpha1.AuditRecord) string { return record.Spec.SubjectRef.UID }

// isOfMember reports whether a record is about a member cluster.
func isOfMember(record *fleetflowv1alpha1.AuditRecord) bool {
	return strings.HasPrefix(string(record.Spec.Type), "member.")
}

// byKey parts records by a key, and returns the keys in the order of the records.
func byKey(records []*fleetflowv1alpha1.AuditRecord, keyOf func(*fleetflowv1alpha1.AuditRecord) string) (parts map[string][]*fleetflowv1alpha1.AuditRecord, order []string) {
	parts = map[string][]*fleetflowv1alpha1.AuditRecord{}
	for _, record := range records {
		key := keyOf(record)
		if parts[key] == nil {
			order = append(order, key)
		}
		parts[key] = append(parts[key], record)
	}
	return parts, order
}

// Mood is how good or bad news are.
type Mood int

// Moods, the more urgent the higher.
const (
	Plain Mood = iota
	Good
	Waits
	Bad
)

// Message is what people are told at a time.
type Message struct {
	// ID is the same for the same records: who gets a message twice can drop it.
	ID string
	// Title says what has happened, and where.
	Title string
	Mood  Mood
	// Entries are about the records, the oldest first, and Earlier is of how many they do not.
	Entries []Entry
	Earlier int
	// Next is the command by which to look, or to go on; it is shown as a text to copy. No message has a link that acts.
	Next string
	// Link is the page of the dashboard; empty if the channel has none.
	Link string
	// Thread is the run that the message is about; empty if it is about more.
	Thread string
	// Records are those that the message tells.
	Records []*fleetflowv1alpha1.AuditRecord
	// Reminder is how often the message reminds of what it tells; 0 for the first message of it.
	Reminder int32
	// Problem is what the template of the rule gives in place of a text; empty if there is none.
	Problem string
}

// Entry is about one record.
type Entry struct {
	Time time.Time
	// What says what has happened; Who has done it, and Why that one or the hub agent has said. Custom is the text of the rule, in place of all
	// three.
	What, Who, Why, Custom string
}

// messageOf makes a message of records of one object, or of one type.
func messageOf(channel *fleetflowv1alpha1.NotificationChannel, rule *Rule, records []*fleetflowv1alpha1.AuditRecord) Message {
	most := mostUrgent(records)
	message := Message{
		ID: idOf(records), Title: capital(sentenceOf(most)), Mood: moodOf(most), Next: nextOf(most), Link: linkTo(channel, runPath(most)),
		Records: records,
	}
	if most.Spec.UpdateRunName != "" {
		message.Thread = subjectOf(most)
	}
	if _, objects := byKey(records, subjectOf); len(objects) > 1 && isOfMember(most) {
		message.Title += fmt.Sprintf(", and %d more are like it", len(objects)-1)
		message.Next = "kubectl get memberclusters"
	}
	for _, record := range records[max(0, len(records)-maxEntries):] {
		entry := entryOf(record)
		custom, problem := rule.Text(record)
		if problem != "" {
			message.Problem = problem
		}
		entry.Custom = custom
		message.Entries = append(message.Entries, entry)
	}
	message.Earlier = len(records) - len(message.Entries)
	return message
}

// mostUrgent returns the record that is the most urgent; of several, the last.
func mostUrgent(records []*fleetflowv1alpha1.AuditRecord) *fleetflowv1alpha1.AuditRecord {
	most := records[0]
	for _, record := range records {
		if moodOf(record) >= moodOf(most) {
			most = record
		}
	}
	return most
}

// digestOf sums up records of many objects: of how many types they are, and what is most urgent.
func digestOf(channel *fleetflowv1alpha1.NotificationChannel, records []*fleetflowv1alpha1.AuditRecord) Message {
	counts := map[fleetflowv1alpha1.AuditRecordType]int{}
	for _, record := range records {
		counts[record.Spec.Type]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b fleetflowv1alpha1.AuditRecordType) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(string(a), string(b)))
	})
	texts := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		texts = append(texts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	objects, order := byKey(records, subjectOf)
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(moodOf(mostUrgent(objects[b])), moodOf(mostUrgent(objects[a])))
	})
	message := Message{
		ID: idOf(records), Title: fmt.Sprintf("%d records of %d objects", len(records), len(objects)), Mood: moodOf(mostUrgent(records)),
		Next: "kubectl fleet records --since 1h", Link: linkTo(channel, "/runs"), Records: records,
		Entries: []Entry{{Custom: strings.Join(texts, ", ")}},
	}
	for _, uid := range order[:min(len(order), maxObjects)] {
		message.Entries = append(message.Entries, Entry{Custom: capital(sentenceOf(mostUrgent(objects[uid])))})
	}
	if more := len(order) - maxObjects; more > 0 {
		message.Entries = append(message.Entries, Entry{Custom: fmt.Sprintf("and %d more objects", more)})
	}
	return message
}

// idOf returns the ID of a message about records: that of the record, if there is one.
func idOf(records []*fleetflowv1alpha1.AuditRecord) string {
	if len(records) == 1 {
		return "msg_" + records[0].Spec.ID[:min(len(records[0].Spec.ID), idLength)]
	}
	ids := make([]string, 0, len(records))
	for _, record := range records {
		ids = append(ids, record.Spec.ID)
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, "|")))
	return "msg_" + hex.EncodeToString(sum[:])[:idLength]
}

// idLength is how many digits of a hash tell messages apart.
const idLength = 32

// Time returns when what the message tells last has happened.
func (m *Message) Time() time.Time {
	var last time.Time
	for _, record := range m.Records {
		if at := record.Spec.Time.UTC(); at.After(last) {
			last = at
		}
	}
	if len(m.Records) == 0 && len(m.Entries) > 0 {
		return m.Entries[0].Time
	}
	return last
}
