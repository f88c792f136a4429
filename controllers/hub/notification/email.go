package notification

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"net"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"
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
	if err := client.DialAndSendWithContext(ctx, letter); err != nil {
		return judgeMail(err, credentials)
	}
	return nil
}

// judgeMail returns why a mail was not taken. What a server says about an account may quote it, in any form, and is not shown.
func judgeMail(err error, credentials []string) error {
	why := "the mail was not taken: " + outbound.Words(err.Error(), maxWords, credentials)
	code := 0
	if answer, is := errors.AsType[*textproto.Error](err); is {
		code = answer.Code
	}
	if of, is := errors.AsType[*mail.SendError](err); is {
		code = of.ErrorCode()
	}
	if strings.Contains(err.Error(), "AUTH") {
		why = fmt.Sprintf("the mail was not taken: the server answers %d to the username and the password", code)
	}
	if code >= permanent {
		return &delivery.RefusedError{Why: why}
	}
	return errors.New(why)
}

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
