function subscriber ()
  session = Session ();
  session.subscribe (wattwire_kit ('receiving_topic'), @(data) wattwire_kit ('received', data));
  session.ready (session.await_connected ());
  wattwire_kit ('poll', @(timeout_s) session.poll (timeout_s));
  session.close ();
end
