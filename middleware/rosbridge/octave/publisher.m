function publisher ()
  session = Session ();
  session.publish_on (wattwire_kit ('sending_topic'), false);
  session.ready (session.await_connected ());
  wattwire_kit ('send_all', @(buffer) session.publish (buffer));
  session.close ();
end
