// Where cities are: name, country, latitude, longitude, to a hundredth of a degree.
// A name that two countries have stands for the first one, unless the country is written.
const rows =
  "tokyo,jp,35.68,139.69;osaka,jp,34.69,135.50;nagoya,jp,35.18,136.91;fukuoka,jp,33.59,130.40;sapporo,jp,43.06,141.35;kyoto,jp,35.01,135.77;" +
  "seoul,kr,37.57,126.98;busan,kr,35.18,129.08;beijing,cn,39.90,116.41;shanghai,cn,31.23,121.47;shenzhen,cn,22.54,114.06;guangzhou,cn,23.13,113.26;" +
  "chengdu,cn,30.57,104.07;chongqing,cn,29.56,106.55;wuhan,cn,30.59,114.31;hangzhou,cn,30.27,120.16;xian,cn,34.34,108.94;nanjing,cn,32.06,118.80;" +
  "tianjin,cn,39.13,117.20;hong kong,hk,22.32,114.17;macau,mo,22.20,113.54;taipei,tw,25.03,121.57;kaohsiung,tw,22.63,120.30;singapore,sg,1.35,103.82;" +
  "kuala lumpur,my,3.14,101.69;johor bahru,my,1.49,103.74;penang,my,5.41,100.33;jakarta,id,-6.21,106.85;surabaya,id,-7.26,112.75;bandung,id,-6.92,107.62;" +
  "bangkok,th,13.76,100.50;chiang mai,th,18.79,98.99;hanoi,vn,21.03,105.85;ho chi minh city,vn,10.82,106.63;da nang,vn,16.05,108.20;manila,ph,14.60,120.98;" +
  "cebu,ph,10.32,123.89;phnom penh,kh,11.56,104.92;vientiane,la,17.98,102.63;yangon,mm,16.87,96.20;dhaka,bd,23.81,90.41;kathmandu,np,27.72,85.32;" +
  "colombo,lk,6.93,79.86;mumbai,in,19.08,72.88;delhi,in,28.61,77.21;new delhi,in,28.61,77.21;bangalore,in,12.97,77.59;bengaluru,in,12.97,77.59;" +
  "chennai,in,13.08,80.27;hyderabad,in,17.39,78.49;kolkata,in,22.57,88.36;pune,in,18.52,73.86;ahmedabad,in,23.02,72.57;karachi,pk,24.86,67.00;" +
  "lahore,pk,31.52,74.36;islamabad,pk,33.68,73.05;kabul,af,34.53,69.17;tashkent,uz,41.30,69.24;almaty,kz,43.24,76.89;astana,kz,51.17,71.43;" +
  "bishkek,kg,42.87,74.57;ulaanbaatar,mn,47.89,106.91;tehran,ir,35.69,51.39;baghdad,iq,33.31,44.36;riyadh,sa,24.71,46.68;jeddah,sa,21.49,39.19;" +
  "dammam,sa,26.43,50.10;dubai,ae,25.20,55.27;abu dhabi,ae,24.45,54.38;doha,qa,25.29,51.53;kuwait city,kw,29.38,47.98;manama,bh,26.23,50.59;" +
  "muscat,om,23.59,58.41;amman,jo,31.95,35.93;beirut,lb,33.89,35.50;damascus,sy,33.51,36.29;jerusalem,il,31.77,35.21;tel aviv,il,32.09,34.78;" +
  "haifa,il,32.79,34.99;istanbul,tr,41.01,28.98;ankara,tr,39.93,32.86;izmir,tr,38.42,27.14;tbilisi,ge,41.72,44.79;yerevan,am,40.18,44.51;" +
  "baku,az,40.41,49.87;nicosia,cy,35.19,33.38;moscow,ru,55.76,37.62;saint petersburg,ru,59.93,30.34;novosibirsk,ru,55.03,82.92;" +
  "yekaterinburg,ru,56.84,60.61;kazan,ru,55.80,49.11;vladivostok,ru,43.12,131.89;minsk,by,53.90,27.56;kyiv,ua,50.45,30.52;lviv,ua,49.84,24.03;" +
  "odesa,ua,46.48,30.72;kharkiv,ua,49.99,36.23;chisinau,md,47.01,28.86;bucharest,ro,44.43,26.10;cluj,ro,46.77,23.60;sofia,bg,42.70,23.32;" +
  "athens,gr,37.98,23.73;thessaloniki,gr,40.64,22.94;skopje,mk,42.00,21.43;tirana,al,41.33,19.82;belgrade,rs,44.79,20.45;sarajevo,ba,43.86,18.41;" +
  "podgorica,me,42.43,19.26;zagreb,hr,45.82,15.98;split,hr,43.51,16.44;ljubljana,si,46.06,14.51;budapest,hu,47.50,19.04;bratislava,sk,48.15,17.11;" +
  "kosice,sk,48.72,21.26;prague,cz,50.08,14.44;brno,cz,49.20,16.61;vienna,at,48.21,16.37;graz,at,47.07,15.44;linz,at,48.31,14.29;salzburg,at,47.81,13.06;" +
  "innsbruck,at,47.27,11.39;warsaw,pl,52.23,21.01;krakow,pl,50.06,19.94;wroclaw,pl,51.11,17.04;gdansk,pl,54.35,18.65;poznan,pl,52.41,16.93;" +
  "vilnius,lt,54.69,25.28;kaunas,lt,54.90,23.90;riga,lv,56.95,24.11;tallinn,ee,59.44,24.75;tartu,ee,58.38,26.72;helsinki,fi,60.17,24.94;" +
  "espoo,fi,60.21,24.66;tampere,fi,61.50,23.76;turku,fi,60.45,22.27;oulu,fi,65.01,25.47;hamina,fi,60.57,27.20;stockholm,se,59.33,18.07;" +
  "gothenburg,se,57.71,11.97;malmo,se,55.60,13.00;uppsala,se,59.86,17.64;lulea,se,65.58,22.15;gavle,se,60.67,17.14;oslo,no,59.91,10.75;" +
  "bergen,no,60.39,5.32;trondheim,no,63.43,10.40;stavanger,no,58.97,5.73;tromso,no,69.65,18.96;copenhagen,dk,55.68,12.57;aarhus,dk,56.16,10.20;" +
  "odense,dk,55.40,10.39;reykjavik,is,64.15,-21.94;berlin,de,52.52,13.41;hamburg,de,53.55,9.99;munich,de,48.14,11.58;frankfurt,de,50.11,8.68;" +
  "cologne,de,50.94,6.96;dusseldorf,de,51.23,6.78;stuttgart,de,48.78,9.18;leipzig,de,51.34,12.37;dresden,de,51.05,13.74;nuremberg,de,49.45,11.08;" +
  "hanover,de,52.38,9.73;bremen,de,53.08,8.80;karlsruhe,de,49.01,8.40;heidelberg,de,49.40,8.67;falkenstein,de,50.48,12.37;darmstadt,de,49.87,8.65;" +
  "aachen,de,50.78,6.08;zurich,ch,47.38,8.54;geneva,ch,46.20,6.14;basel,ch,47.56,7.59;bern,ch,46.95,7.45;lausanne,ch,46.52,6.63;lugano,ch,46.00,8.95;" +
  "luxembourg,lu,49.61,6.13;brussels,be,50.85,4.35;antwerp,be,51.22,4.40;ghent,be,51.05,3.72;amsterdam,nl,52.37,4.90;rotterdam,nl,51.92,4.48;" +
  "the hague,nl,52.08,4.30;utrecht,nl,52.09,5.12;eindhoven,nl,51.44,5.47;groningen,nl,53.22,6.57;delft,nl,52.01,4.36;paris,fr,48.86,2.35;" +
  "marseille,fr,43.30,5.37;lyon,fr,45.76,4.84;toulouse,fr,43.60,1.44;nice,fr,43.71,7.26;bordeaux,fr,44.84,-0.58;lille,fr,50.63,3.06;nantes,fr,47.22,-1.55;" +
  "strasbourg,fr,48.57,7.75;rennes,fr,48.11,-1.68;grenoble,fr,45.19,5.72;gravelines,fr,50.99,2.13;roubaix,fr,50.69,3.17;monaco,mc,43.74,7.42;" +
  "madrid,es,40.42,-3.70;barcelona,es,41.39,2.17;valencia,es,39.47,-0.38;seville,es,37.39,-5.98;bilbao,es,43.26,-2.94;zaragoza,es,41.65,-0.89;" +
  "malaga,es,36.72,-4.42;palma,es,39.57,2.65;lisbon,pt,38.72,-9.14;porto,pt,41.16,-8.63;milan,it,45.46,9.19;rome,it,41.90,12.50;turin,it,45.07,7.69;" +
  "naples,it,40.85,14.27;bologna,it,44.49,11.34;florence,it,43.77,11.26;venice,it,45.44,12.32;palermo,it,38.12,13.36;genoa,it,44.41,8.93;" +
  "trieste,it,45.65,13.78;valletta,mt,35.90,14.51;london,gb,51.51,-0.13;manchester,gb,53.48,-2.24;birmingham,gb,52.49,-1.89;leeds,gb,53.80,-1.55;" +
  "glasgow,gb,55.86,-4.25;edinburgh,gb,55.95,-3.19;bristol,gb,51.45,-2.59;cardiff,gb,51.48,-3.18;cambridge,gb,52.21,0.12;oxford,gb,51.75,-1.26;" +
  "belfast,gb,54.60,-5.93;slough,gb,51.51,-0.60;newcastle,gb,54.98,-1.61;liverpool,gb,53.41,-2.98;dublin,ie,53.35,-6.26;cork,ie,51.90,-8.47;" +
  "galway,ie,53.27,-9.06;new york,us,40.71,-74.01;newark,us,40.74,-74.17;boston,us,42.36,-71.06;cambridge,us,42.37,-71.11;philadelphia,us,39.95,-75.17;" +
  "washington,us,38.91,-77.04;ashburn,us,39.04,-77.49;baltimore,us,39.29,-76.61;richmond,us,37.54,-77.44;raleigh,us,35.78,-78.64;charlotte,us,35.23,-80.84;" +
  "atlanta,us,33.75,-84.39;miami,us,25.76,-80.19;tampa,us,27.95,-82.46;orlando,us,28.54,-81.38;nashville,us,36.16,-86.78;pittsburgh,us,40.44,-80.00;" +
  "buffalo,us,42.89,-78.88;cleveland,us,41.50,-81.69;columbus,us,39.96,-83.00;cincinnati,us,39.10,-84.51;detroit,us,42.33,-83.05;chicago,us,41.88,-87.63;" +
  "milwaukee,us,43.04,-87.91;minneapolis,us,44.98,-93.27;st louis,us,38.63,-90.20;kansas city,us,39.10,-94.58;des moines,us,41.59,-93.62;" +
  "council bluffs,us,41.26,-95.86;omaha,us,41.26,-95.93;dallas,us,32.78,-96.80;houston,us,29.76,-95.37;austin,us,30.27,-97.74;san antonio,us,29.42,-98.49;" +
  "new orleans,us,29.95,-90.07;denver,us,39.74,-104.99;boulder,us,40.01,-105.27;salt lake city,us,40.76,-111.89;phoenix,us,33.45,-112.07;" +
  "tucson,us,32.22,-110.97;albuquerque,us,35.08,-106.65;las vegas,us,36.17,-115.14;los angeles,us,34.05,-118.24;san diego,us,32.72,-117.16;" +
  "san francisco,us,37.77,-122.42;san jose,us,37.34,-121.89;santa clara,us,37.35,-121.96;palo alto,us,37.44,-122.14;berkeley,us,37.87,-122.27;" +
  "sacramento,us,38.58,-121.49;portland,us,45.52,-122.68;the dalles,us,45.59,-121.18;hillsboro,us,45.52,-122.99;seattle,us,47.61,-122.33;" +
  "spokane,us,47.66,-117.43;boise,us,43.62,-116.20;anchorage,us,61.22,-149.90;honolulu,us,21.31,-157.86;princeton,us,40.35,-74.66;ithaca,us,42.44,-76.50;" +
  "toronto,ca,43.65,-79.38;montreal,ca,45.50,-73.57;ottawa,ca,45.42,-75.70;quebec city,ca,46.81,-71.21;vancouver,ca,49.28,-123.12;calgary,ca,51.05,-114.07;" +
  "edmonton,ca,53.55,-113.49;winnipeg,ca,49.90,-97.14;halifax,ca,44.65,-63.58;beauharnois,ca,45.31,-73.87;waterloo,ca,43.46,-80.52;" +
  "mexico city,mx,19.43,-99.13;guadalajara,mx,20.66,-103.35;monterrey,mx,25.69,-100.32;queretaro,mx,20.59,-100.39;tijuana,mx,32.51,-117.04;" +
  "guatemala city,gt,14.63,-90.51;san salvador,sv,13.69,-89.22;tegucigalpa,hn,14.07,-87.19;managua,ni,12.11,-86.24;san jose,cr,9.93,-84.08;" +
  "panama city,pa,8.98,-79.52;havana,cu,23.11,-82.37;kingston,jm,17.97,-76.79;santo domingo,do,18.49,-69.93;san juan,pr,18.47,-66.11;bogota,co,4.71,-74.07;" +
  "medellin,co,6.24,-75.58;cali,co,3.45,-76.53;caracas,ve,10.48,-66.90;quito,ec,-0.18,-78.47;guayaquil,ec,-2.17,-79.92;lima,pe,-12.05,-77.04;" +
  "la paz,bo,-16.49,-68.12;santa cruz,bo,-17.78,-63.18;asuncion,py,-25.26,-57.58;montevideo,uy,-34.90,-56.16;buenos aires,ar,-34.60,-58.38;" +
  "cordoba,ar,-31.42,-64.18;rosario,ar,-32.94,-60.64;mendoza,ar,-32.89,-68.84;santiago,cl,-33.45,-70.67;valparaiso,cl,-33.05,-71.61;" +
  "sao paulo,br,-23.55,-46.63;rio de janeiro,br,-22.91,-43.17;brasilia,br,-15.79,-47.88;fortaleza,br,-3.73,-38.53;porto alegre,br,-30.03,-51.22;" +
  "curitiba,br,-25.43,-49.27;belo horizonte,br,-19.92,-43.94;recife,br,-8.05,-34.88;salvador,br,-12.97,-38.50;manaus,br,-3.12,-60.02;" +
  "campinas,br,-22.91,-47.06;cairo,eg,30.04,31.24;alexandria,eg,31.20,29.92;tripoli,ly,32.89,13.19;tunis,tn,36.81,10.18;algiers,dz,36.75,3.06;" +
  "casablanca,ma,33.57,-7.59;rabat,ma,34.02,-6.84;dakar,sn,14.72,-17.47;accra,gh,5.60,-0.19;abidjan,ci,5.36,-4.01;lagos,ng,6.52,3.38;abuja,ng,9.08,7.40;" +
  "douala,cm,4.05,9.70;kinshasa,cd,-4.44,15.27;luanda,ao,-8.84,13.23;khartoum,sd,15.50,32.56;addis ababa,et,9.03,38.74;djibouti,dj,11.59,43.15;" +
  "nairobi,ke,-1.29,36.82;mombasa,ke,-4.04,39.67;kampala,ug,0.35,32.58;kigali,rw,-1.94,30.06;dar es salaam,tz,-6.79,39.21;lusaka,zm,-15.39,28.32;" +
  "harare,zw,-17.83,31.05;maputo,mz,-25.97,32.57;gaborone,bw,-24.63,25.92;windhoek,na,-22.56,17.08;johannesburg,za,-26.20,28.05;pretoria,za,-25.75,28.19;" +
  "cape town,za,-33.92,18.42;durban,za,-29.86,31.02;antananarivo,mg,-18.88,47.51;port louis,mu,-20.16,57.50;sydney,au,-33.87,151.21;" +
  "melbourne,au,-37.81,144.96;brisbane,au,-27.47,153.03;perth,au,-31.95,115.86;adelaide,au,-34.93,138.60;canberra,au,-35.28,149.13;hobart,au,-42.88,147.33;" +
  "darwin,au,-12.46,130.84;auckland,nz,-36.85,174.76;wellington,nz,-41.29,174.78;christchurch,nz,-43.53,172.64;suva,fj,-18.14,178.44;" +
  "noumea,nc,-22.27,166.45;port moresby,pg,-9.44,147.18";

/** A city's place, in degrees. */
export interface City {
  name: string;
  /** Two letters of ISO 3166. */
  country: string;
  lat: number;
  lon: number;
}

/** All cities, in the order of the table. */
export const cities: readonly City[] = rows.split(";").map((row) => {
  const [name = "", country = "", lat = "", lon = ""] = row.split(",");
  return { name, country, lat: Number(lat), lon: Number(lon) };
});
