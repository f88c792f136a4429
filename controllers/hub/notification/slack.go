package notification

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// slackURL is where Slack takes messages of apps: a token is sent there alone.
const slackURL = "https://slack.com/api/chat.postMessage"

// maxSlackSection is how long a text of Slack's may be, with some left for what escapes add.
const maxSlackSection = 2900

// slackEscapes are the characters by which texts of Slack's have links and mentions: what users have said has none.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Verbatim has Slack make no links and mentions of what only looks like one.
	Verbatim bool `json:"verbatim"`
}

type slackBlock struct {
	Type string     `json:"type"`
	Text *slackText `json:"text,omitempty"`
}

// slackMessage is what Slack takes.
type slackMessage struct {
	Channel string `json:"channel,omitempty"`
	// Thread is the message that this one follows, and Broadcast whether it is shown in the channel, too.
	Thread    string `json:"thread_ts,omitempty"`
	Broadcast bool   `json:"reply_broadcast,omitempty"`
	// Text is for notices and for those who have the message read out.
	Text        string         `json:"text"`
	Blocks      []slackBlock   `json:"blocks"`
	UnfurlLinks bool           `json:"unfurl_links"`
	UnfurlMedia bool           `json:"unfurl_media"`
	Metadata    *slackMetadata `json:"metadata,omitempty"`
}

// slackMetadata has the ID of a message for programs that read the channel.
type slackMetadata struct {
	EventType    string            `json:"event_type"`
	EventPayload map[string]string `json:"event_payload"`
}

// slackSigns stand for moods.
var slackSigns = map[Mood]string{Plain: ":information_source:", Good: ":white_check_mark:", Waits: ":hourglass_flowing_sand:", Bad: ":x:"}

// slackBody returns a message as Slack takes it. An incoming webhook has its channel, and takes no metadata. In a thread, what people had better do something
// about is shown in the channel, too.
func slackBody(channel, thread string, message *Message) ([]byte, error) {
	title := clusterv1beta1.CutText(slackEscapes.Replace(message.Title), maxSlackSection)
	sections := []string{slackSigns[message.Mood] + " *" + title + "*"}
	sections = append(sections, sectionsOf(message.Lines())...)
	last := "Next: `" + message.Next + "`"
	if message.Link != "" {
		last += "\n<" + slackEscapes.Replace(message.Link) + "|Open the dashboard>"
	}
	sections = append(sections, last)
	body := slackMessage{Channel: channel, Thread: thread, Broadcast: thread != "" && message.Mood >= Waits, Text: title}
	for _, section := range sections {
		body.Blocks = append(body.Blocks, slackBlock{Type: "section", Text: &slackText{Type: "mrkdwn", Text: section, Verbatim: true}})
	}
	if channel != "" {
		body.Metadata = &slackMetadata{EventType: "update_run_message", EventPayload: map[string]string{"id": message.ID}}
	}
	return json.Marshal(body)
}

// maxSlackSections is how many texts a message has at most: Slack takes 50.
const maxSlackSections = 20

// sectionsOf puts lines together to texts that Slack takes.
func sectionsOf(lines []string) (sections []string) {
	text := ""
	for _, line := range lines {
		line = cutEscaped(slackEscapes.Replace(line), maxSlackSection)
		if text != "" && len(text)+1+len(line) > maxSlackSection {
			sections = append(sections, text)
			text = ""
		}
		text = strings.TrimPrefix(text+"\n"+line, "\n")
	}
	if text != "" {
		sections = append(sections, text)
	}
	if len(sections) > maxSlackSections {
		sections = slices.Concat(sections[:maxSlackSections-1], []string{"…"})
	}
	return sections
}

// cutEscaped cuts a text, and no escape in two.
func cutEscaped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := clusterv1beta1.CutText(text, most)
	if at := strings.LastIndexByte(cut, '&'); at >= 0 && !strings.Contains(cut[at:], ";") {
		cut = cut[:at] + "…"
	}
	if !utf8.ValidString(cut) {
		return ""
	}
	return cut
}

// slackAnswer is what Slack says to the message of an app; the status of the answer is 200 also if it is not taken.
type slackAnswer struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
	// Time is what Slack calls the message by.
	Time string `json:"ts"`
}

// slackOfThreads are errors of Slack about a thread that takes no message: one outside of it may be taken.
var slackOfThreads = []string{"cannot_reply_to_message", "restricted_action_thread_locked", "thread_not_found", "invalid_thread_ts"}

// slackPasses are errors of Slack that pass: all others stay until the channel is set up in another way.
var slackPasses = []string{"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}

// slackOfContent are errors of Slack about one message: others may be taken.
var slackOfContent = []string{"invalid_blocks", "invalid_blocks_format", "msg_too_long", "no_text", "msg_blocks_too_long"}
