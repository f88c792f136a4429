package notification

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"net"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetflow/fleetflow/activities/outbound"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

const (
	// submissions is the port at which connections begin encrypted.
	submissions = 465
	// maxSubject is how long the subject of a mail is.
	maxSubject = 200
)

// letterOf returns a message as a mail: a text, and the same as HTML, in which what users have said is no markup.
func letterOf(channel *fleetflowv1alpha1.NotificationChannel, message *Message) (*mail.Msg, error) {
	to := channel.Spec.Email
	letter := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := letter.From(to.From); err != nil {
		return nil, fmt.Errorf("the address of the sender: %w", err)
	}
	if err := letter.To(to.To...); err != nil {
		return nil, fmt.Errorf("the addresses of those who get it: %w", err)
	}
	letter.Subject(clusterv1beta1.CutText(shown(message.Title), maxSubject))
	_, domain, _ := strings.Cut(to.From, "@")
	letter.SetMessageIDWithValue(message.ID + "@" + domain) // a mailbox shows a letter once that comes twice
	letter.SetDateWithValue(message.Time())
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // mailboxes do not answer it
	lines := message.Lines()
	plain := message.Title + "\n\n" + strings.Join(lines, "\n") + "\n\nNext: " + message.Next + "\n"
	rich := "<p><b>" + html.EscapeString(message.Title) + "</b></p>\n<ul>\n"
	for _, line := range lines {
		rich += "<li>" + html.EscapeString(line) + "</li>\n"
	}
	rich += "</ul>\n<p>Next: <code>" + html.EscapeString(message.Next) + "</code></p>\n"
	if message.Link != "" {
		plain += message.Link + "\n"
		rich += `<p><a href="` + html.EscapeString(message.Link) + `">Open the dashboard</a></p>` + "\n"
	}
	letter.SetBodyString(mail.TypeTextPlain, plain)
	letter.AddAlternativeString(mail.TypeTextHTML, rich)
	return letter, nil
}

// sendMail hands a message over to the server of a channel, encrypted or not at all.
func (s *Sender) sendMail(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel, message *Message) error {
	letter, err := letterOf(channel, message)
	if err != nil {
		return &delivery.RefusedError{Why: err.Error()}
	}
	host, port, err := hostOf(channel.Spec.Email.Server)
	if err != nil {
		return &delivery.RefusedError{Why: err.Error()}
	}
	security, err := s.security(ctx, channel.Name, channel.Spec.Email.CAConfigMap)
	if err != nil {
		return err
	}
	security.ServerName = host
	dialer, err := s.Client.Dialer(ctx)
	if err != nil {
		return err
	}
	options := []mail.Option{
		mail.WithPort(port), mail.WithTimeout(timeout), mail.WithTLSConfig(security), mail.WithTLSPolicy(mail.TLSMandatory),
		mail.WithDialContextFunc(dialer.DialContext),
	}
	if port == submissions {
		options = append(options, mail.WithSSL(), mail.WithDialContextFunc((&tls.Dialer{NetDialer: dialer, Config: security}).DialContext))
	}
	username, password, err := s.account(ctx, channel)
	if err != nil {
		return err
	}
	credentials := []string{password}
	if username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(username), mail.WithPassword(password))
	}
	client, err := mail.NewClient(host, options...)
	if err != nil {
		return &delivery.RefusedError{Why: outbound.Words(err.Error(), maxWords, credentials)}
	}
	return handOver(ctx, client, letter, credentials)
}

// partlyError says that a message has arrived, and not everywhere: it is not sent again.
type partlyError struct{ why string }

func (e *partlyError) Error() string { return e.why }

// handOver sends a letter. Where mailboxes are refused for good, the others get it: one of them silences none.
func handOver(ctx context.Context, client *mail.Client, letter *mail.Msg, credentials []string) error {
	server, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return judgeMail(err, credentials)
	}
	defer func() { _ = client.CloseWithSMTPClient(server) }() // a letter that was taken stays so
	err = client.SendWithSMTPClient(server, letter)
	if err == nil || letter.IsDelivered() {
		return nil
	}
	if of, is := errors.AsType[*mail.SendError](err); !is || of.Reason != mail.ErrSMTPRcptTo {
		return judgeMail(err, credentials)
	}
	taken, refused, failed := askFor(server, letter)
	switch {
	case failed != nil:
		return judgeMail(failed, credentials)
	case len(refused) == 0:
		return judgeMail(err, credentials)
	}
	why := "the server of mail refuses " + clusterv1beta1.CutText(strings.Join(refused, ", "), maxWords)
	if len(taken) == 0 {
		return &delivery.RefusedError{Why: why}
	}
	if err := letter.To(taken...); err != nil {
		return &delivery.RefusedError{Why: err.Error()}
	}
	if err := client.SendWithSMTPClient(server, letter); err != nil && !letter.IsDelivered() {
		return judgeMail(err, credentials)
	}
	return &partlyError{why + "; the others have the mail"}
}

// askFor asks a server which mailboxes it takes a letter for, and which it refuses for good; failed is why that could not be asked.
func askFor(server *smtp.Client, letter *mail.Msg) (taken, refused []string, failed error) {
	from, err := letter.GetSender(false)
	if err != nil {
		return nil, nil, err
	}
	mailboxes, err := letter.GetRecipients()
	if err != nil {
		return nil, nil, err
	}
	if err := server.Mail(from); err != nil {
		return nil, nil, err
	}
	for _, mailbox := range mailboxes {
		err := server.Rcpt(mailbox)
		if answer, is := errors.AsType[*textproto.Error](err); is && answer.Code >= permanent {
			refused = append(refused, strings.Trim(mailbox, "<>"))
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		taken = append(taken, mailbox)
	}
	return taken, refused, server.Reset()
}

// judgeMail returns why a mail was not taken. What a server says about an account may quote it, in any form, and is not shown. Only what it
// says of the account and of the sender is about each next mail, too.
func judgeMail(err error, credentials []string) error {
	why := "the mail was not taken: " + outbound.Words(err.Error(), maxWords, credentials)
	code := 0
	if answer, is := errors.AsType[*textproto.Error](err); is {
		code = answer.Code
	}
	of, isSent := errors.AsType[*mail.SendError](err)
	if isSent {
		code = of.ErrorCode()
	}
	ofAccount := strings.Contains(err.Error(), "AUTH")
	if ofAccount {
		why = fmt.Sprintf("the mail was not taken: the server answers %d to the username and the password", code)
	}
	switch {
	case code < permanent:
	case isSent && slices.Contains(ofContent, of.Reason):
		return &delivery.RefusedError{Why: why, Content: true}
	case isSent && of.Reason == mail.ErrSMTPMailFrom, !isSent && ofAccount:
		return &delivery.RefusedError{Why: why}
	}
	return errors.New(why)
}

// ofContent are the steps at which a server refuses what a mail says.
var ofContent = []mail.SendErrReason{mail.ErrSMTPData, mail.ErrWriteContent, mail.ErrSMTPDataClose}

// permanent is from which code on a server of mail says that it never takes a mail.
const permanent = 500

// hostOf parts the host and the port of a server.
func hostOf(server string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(server)
	if err != nil {
		return "", 0, fmt.Errorf("email.server: %w", err)
	}
	if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("email.server: %s is no port: it is 1 to 65535", text)
	}
	return host, port, nil
}

// account reads the account by which mail is sent; empty if the channel has none.
func (s *Sender) account(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel) (username, password string, err error) {
	to := channel.Spec.Email
	if to.UsernameSecret == nil || to.PasswordSecret == nil {
		return "", "", nil
	}
	for _, of := range []struct {
		needed fleetflowv1alpha1.ChannelSecret
		into   *string
	}{{*to.UsernameSecret, &username}, {*to.PasswordSecret, &password}} {
		var secret corev1.Secret
		value, err := s.read(ctx, channel.Name, of.needed, &secret)
		if err != nil {
			return "", "", err
		}
		if given := secret.Annotations[fleetflowv1alpha1.ChannelServerAnnotation]; given != to.Server {
			return "", "", &unusableError{fleetflowv1alpha1.ReasonSecretNotForServer, fmt.Sprintf(
				"Secret %s is not for the server of this channel: its owner lets that have it by the annotation %s=%s",
				of.needed.Name, fleetflowv1alpha1.ChannelServerAnnotation, to.Server)}
		}
		*of.into = value
	}
	return username, password, nil
}
